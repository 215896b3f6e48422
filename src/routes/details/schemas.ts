import * as z from 'zod/mini';

export const SCHEMAS = '#/components/schemas/';

export type Schema = z.core.$ZodType;

/** What the document that is being made refers to. */
export const named = new Set<Schema>();

/** @throws Error for a schema without a name */
export function reference(schema: Schema): { $ref: string } {
  const name = z.globalRegistry.get(schema)?.id;
  if (name === undefined) throw new Error('a schema in the document needs a name: documented(schema, { id })');
  named.add(schema);
  return { $ref: SCHEMAS + name };
}

/** All that was referred to, and what it is made of. By zod itself: zod-to-openapi reads no schema of zod/mini. */
export const namedSchemas = (): Readonly<Record<string, object>> => jsonSchemaOf(z.union([...named])).$defs ?? {};

type JsonSchema = Readonly<Partial<Record<'type' | 'pattern' | 'enum', unknown>>> & { readonly anyOf?: JsonSchema[] };

export function jsonSchemaOf(schema: Schema): { readonly $defs?: Record<string, object> } {
  const text = JSON.stringify(z.toJSONSchema(schema, { io: 'input' }));
  return JSON.parse(text.replaceAll('#/$defs/', SCHEMAS), tidied) as object;
}

/** Writes `anyOf: [{type: 'string'}, {type: 'null'}]` as `type: ['string', 'null']`; leaves out what OpenAPI implies. */
function tidied(key: string, value: JsonSchema | null): unknown {
  if (key === '$schema') return undefined;
  if (value?.type === 'integer') return { ...value, pattern: undefined }; // that of its text in a query
  const [first, second, ...more] = value?.anyOf ?? [];
  const isPlain = typeof first?.type === 'string' && first.enum === undefined;
  if (!isPlain || second?.type !== 'null' || more.length > 0) return value;
  const { anyOf: _, ...rest } = value ?? {};
  return { ...first, ...rest, type: [first.type, 'null'] };
}
