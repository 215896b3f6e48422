import * as z from 'zod';
import { exampleOf } from '../../upstream/example.ts';
import type { Operation } from '../../upstream/operation.ts';
import { allOperations } from '../../upstream/operations/index.ts';

const COMPONENTS = '#/components/schemas/';

/** JSON of a schema that has a name, with the example that its fields make up. */
export function jsonContent(schema: z.core.$ZodType, example: unknown = exampleOf(schema)) {
  return { 'application/json': { schema: referenceTo(schema), example } };
}

export function referenceTo(schema: z.core.$ZodType): { $ref: string } {
  const name = nameOf(schema);
  if (name === undefined) throw new Error('a schema in the document needs a name: .meta({ id })');
  return { $ref: `${COMPONENTS}${name}` };
}

/** Every schema that has a name, as JSON Schema by zod itself: zod-to-openapi loses nulls of what is used in places. */
export function componentSchemas(): Record<string, object> {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { io: 'input', uri: (name) => `${COMPONENTS}${name}` });
  return JSON.parse(JSON.stringify(schemas), tidied) as Record<string, object>;
}

/** Of a schema that stands in one place. */
export function jsonSchemaOf(schema: z.core.$ZodType): object {
  return JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input' }), tidied)) as object;
}

/** Names the bodies, pages and lists of the table; its resources have names already. Changes nothing when repeated. */
export function nameTableSchemas(): void {
  for (const { id, body, answer } of allOperations as readonly Operation[]) {
    if (body) giveName(body.schema, `${id.charAt(0).toUpperCase()}${id.slice(1)}Body`);
    const collection = answer && collectionName(answer);
    if (collection) giveName(answer, collection);
  }
}

function giveName(schema: z.core.$ZodType, id: string): void {
  z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });
}

function nameOf(schema: unknown): string | undefined {
  return schema instanceof z.core.$ZodType ? z.globalRegistry.get(schema)?.id : undefined;
}

/** A page of `Transaction` is a `TransactionPage`, an array of `ReferralChannel` a `ReferralChannelList`. */
function collectionName(answer: z.core.$ZodType): string | undefined {
  const isPage = answer instanceof z.core.$ZodObject;
  const items: unknown = isPage ? answer._zod.def.shape['results'] : answer;
  const item = items instanceof z.core.$ZodArray ? nameOf(items._zod.def.element) : undefined;
  return item && `${item}${isPage ? 'Page' : 'List'}`;
}

interface JsonSchema {
  readonly type?: unknown;
  readonly pattern?: unknown;
  readonly enum?: unknown;
  readonly anyOf?: readonly JsonSchema[];
}

/** Writes `anyOf: [{type: 'string'}, {type: 'null'}]` as `type: ['string', 'null']`; leaves out what OpenAPI implies. */
function tidied(key: string, value: JsonSchema | null): unknown {
  if (key === '$schema' || key === '$id') return undefined;
  if (value?.type === 'integer') return { ...value, pattern: undefined }; // that of its text in a query
  const [first, second, ...more] = value?.anyOf ?? [];
  const isPlain = typeof first?.type === 'string' && first.enum === undefined;
  if (!isPlain || second?.type !== 'null' || more.length > 0) return value;
  const { anyOf: _, ...rest } = value ?? {};
  return { ...first, ...rest, type: [first.type, 'null'] };
}
