import * as z from 'zod';
import { exampleOf } from '../../upstream/example.ts';
import type { Operation } from '../../upstream/operation.ts';
import { allOperations } from '../../upstream/operations/index.ts';

const COMPONENTS = '#/components/schemas/';

/** JSON of a schema that has a name, with the example that its fields make up. */
export function jsonContent(schema: z.ZodType, example: unknown = exampleOf(schema)) {
  return { 'application/json': { schema: referenceTo(schema), example } };
}

export function referenceTo(schema: z.ZodType): { $ref: string } {
  const name = nameOf(schema);
  if (name === undefined) throw new Error('a schema in the document needs a name: .meta({ id })');
  return { $ref: `${COMPONENTS}${name}` };
}

/** Every schema that has a name, as JSON Schema by zod itself: zod-to-openapi loses nulls of what is used in places. */
export function componentSchemas(): Record<string, object> {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { io: 'input', uri: (name) => `${COMPONENTS}${name}` });
  return JSON.parse(JSON.stringify(schemas), tidied) as Record<string, object>;
}

/** Names the bodies, pages and lists of the table; its resources have names already. Changes nothing when repeated. */
export function nameTableSchemas(): void {
  for (const { id, body, answer } of allOperations as readonly Operation[]) {
    if (body) giveName(body.schema, `${id.charAt(0).toUpperCase()}${id.slice(1)}Body`);
    const collection = answer && collectionName(answer);
    if (collection) giveName(answer, collection);
  }
}

function giveName(schema: z.ZodType, id: string): void {
  z.globalRegistry.add(schema, { ...schema.meta(), id });
}

function nameOf(schema: unknown): string | undefined {
  return schema instanceof z.ZodType ? schema.meta()?.id : undefined;
}

/** A page of `Transaction` is a `TransactionPage`, an array of `ReferralChannel` a `ReferralChannelList`. */
function collectionName(answer: z.ZodType): string | undefined {
  const isPage = answer instanceof z.ZodObject;
  const items: unknown = isPage ? answer.shape['results'] : answer;
  const item = items instanceof z.ZodArray ? nameOf(items.element) : undefined;
  return item && `${item}${isPage ? 'Page' : 'List'}`;
}

interface JsonSchema {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly anyOf?: readonly JsonSchema[];
}

/** Writes `anyOf: [{type: 'string'}, {type: 'null'}]` as `type: ['string', 'null']`; leaves out what OpenAPI implies. */
function tidied(key: string, value: JsonSchema | null): unknown {
  if (key === '$schema' || key === '$id') return undefined;
  const [first, second, ...more] = value?.anyOf ?? [];
  const isPlain = typeof first?.type === 'string' && first.enum === undefined;
  if (!isPlain || second?.type !== 'null' || more.length > 0) return value;
  const { anyOf: _, ...rest } = value ?? {};
  return { ...first, ...rest, type: [first.type, 'null'] };
}
