import en from 'zod/v4/locales/en.js';
import * as z from 'zod/mini';

// zod/mini has no error messages until a locale is set.
z.config(en());

/** The schema, with more that the OpenAPI document says about it. */
export function documented<T extends z.ZodMiniType>(schema: T, meta: z.core.GlobalMeta): T {
  const clone = schema.clone(schema.def, { parent: true });
  z.globalRegistry.add(clone, meta);
  return clone;
}

/** Description and example, for the OpenAPI document. The tests use the example too. */
const note = (description: string, example: unknown) => ({ description, examples: [example] });

/** An integer of any size: identifiers beyond 2^53 are legal JSON, and zod's own `int` refuses them. */
export const integer = (description: string, example: number) =>
  documented(z.number().check(z.refine(Number.isInteger, 'expected an integer')), {
    type: 'integer',
    ...note(description, example),
  });

/** An id, or a reference to one. */
export const identifier = (description: string, example: number) =>
  documented(integer(`${description}; may be beyond 2^53`, example), { format: 'int64' });

export const number = (description: string, example: number) => documented(z.number(), note(description, example));

export const text = (description: string, example: string) => documented(z.string(), note(description, example));

export const flag = (description: string, example: boolean) => documented(z.boolean(), note(description, example));

/** A text of one form. `expected`: the error message for any other. */
export const textLike = (form: RegExp, meta: z.core.GlobalMeta, expected?: string) =>
  documented(z.string().check(z.regex(form, expected)), meta);

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$/;

/** ISO 8601 date-time with a numeric offset, and microseconds where there are any. */
export const timestamp = (description: string, example = '2026-06-09T11:50:08.101337-07:00') =>
  textLike(TIMESTAMP, { format: 'date-time', ...note(description, example) });

/** Fields of most resources. */
export const dated = {
  created_at: timestamp('when it was made'),
  updated_at: timestamp('when it last changed'),
};

/** A duration written `[DD] [HH:MM:SS]`, for example `"7 00:00:00"`. */
export const duration = (description: string, example: string) =>
  textLike(/^(\d+ )?\d\d:\d\d:\d\d(\.\d+)?$/, note(description, example));

/** A decimal that the document calls a string in JSON. */
export const decimal = (description: string, example: string) =>
  textLike(/^-?\d+(\.\d+)?$/, note(description, example));

/** An object whose keys are codes and whose values are counts. */
export const counts = (description: string, example: Record<string, number>) =>
  documented(z.record(z.string(), integer('count', 1)), note(description, example));

/**
 * A documented resource: its fields are required, what the document does not list is let through.
 * `name` becomes its component in the OpenAPI document.
 */
export const resource = <S extends z.core.$ZodLooseShape>(name: string, shape: S, description?: string) =>
  documented(z.looseObject(shape), { id: name, ...(description && { description }) });

/** A body of ours, with nothing but its fields. `name` becomes its component in the OpenAPI document. */
export const model = <S extends z.core.$ZodLooseShape>(name: string, shape: S, description?: string) =>
  documented(z.object(shape), { id: name, ...(description && { description }) });

/**
 * A value that fits the schema, made of the examples that its fields document.
 * @throws Error for a field without an example that can be had no other way
 */
export function exampleOf(schema: z.core.$ZodType): unknown {
  const examples = z.globalRegistry.get(schema)?.['examples'];
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  const { def } = (schema as z.core.$ZodTypes)._zod; // zod's documented way to tell schemas apart
  if (def.type === 'object')
    return Object.fromEntries(Object.entries(def.shape).map(([name, field]) => [name, exampleOf(field)]));
  if (def.type === 'array') return [exampleOf(def.element)].filter((item) => item !== undefined);
  if (def.type === 'lazy') return undefined; // what has itself in it ends there
  if (def.type === 'enum') return Object.values(def.entries)[0];
  if (def.type === 'literal') return def.values[0];
  if (def.type === 'union' && def.options[0]) return exampleOf(def.options[0]);
  if ('innerType' in def) return exampleOf(def.innerType);
  throw new Error(`a schema of type ${def.type} has to document an example`);
}
