import en from 'zod/v4/locales/en.js';
import * as z from 'zod/mini';

// zod/mini has no error messages until a locale is set.
z.config(en());

/** The schema with what the OpenAPI document says of it besides. */
export function documented<T extends z.ZodMiniType>(schema: T, meta: z.core.GlobalMeta): T {
  const clone = schema.clone(schema.def, { parent: true });
  z.globalRegistry.add(clone, meta);
  return clone;
}

/** `[description, example]` of a documented field; both go into the OpenAPI document, the example into the tests too. */
type Note<T> = [description: string, example: T];

const note = <T>([description, example]: Note<T>) => ({ description, examples: [example] });

/** An integer of any size: identifiers beyond 2^53 are legal JSON, and zod's own `int` refuses them. */
export const integer = (...about: Note<number>) =>
  documented(z.number().check(z.refine(Number.isInteger, 'expected an integer')), { type: 'integer', ...note(about) });

/** An id, or a reference to one. */
export const identifier = (...[description, example]: Note<number>) =>
  documented(integer(`${description}; may be beyond 2^53`, example), { format: 'int64' });

export const number = (...about: Note<number>) => documented(z.number(), note(about));

export const text = (...about: Note<string>) => documented(z.string(), note(about));

export const flag = (...about: Note<boolean>) => documented(z.boolean(), note(about));

/** A text of one form. `expected`: what is said of any other. */
export const textLike = (form: RegExp, meta: z.core.GlobalMeta, expected?: string) =>
  documented(z.string().check(z.regex(form, expected)), meta);

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$/;

/** ISO 8601 date-time with a numeric offset, and microseconds where there are any. */
export const timestamp = (description: string, example = '2026-06-09T11:50:08.101337-07:00') =>
  textLike(TIMESTAMP, { format: 'date-time', ...note([description, example]) });

/** Fields of most resources. */
export const dated = {
  created_at: timestamp('when it was made'),
  updated_at: timestamp('when it last changed'),
};

/** A duration written `[DD] [HH:MM:SS]`, for example `"7 00:00:00"`. */
export const duration = (...about: Note<string>) => textLike(/^(\d+ )?\d\d:\d\d:\d\d(\.\d+)?$/, note(about));

/** A decimal that the document calls a string in JSON. */
export const decimal = (...about: Note<string>) => textLike(/^-?\d+(\.\d+)?$/, note(about));

/** An object whose keys are codes and whose values are counts. */
export const counts = (...about: Note<Record<string, number>>) =>
  documented(z.record(z.string(), integer('count', 1)), note(about));

/**
 * A documented resource: its fields are required, what the document does not list is let through.
 * `name` becomes its component in the OpenAPI document.
 */
export const resource = <S extends z.core.$ZodLooseShape>(name: string, shape: S, description?: string) =>
  documented(z.looseObject(shape), { id: name, ...(description && { description }) });

/** A body of ours, with nothing but its fields. `name` becomes its component in the OpenAPI document. */
export const model = <S extends z.core.$ZodLooseShape>(name: string, shape: S, description?: string) =>
  documented(z.object(shape), { id: name, ...(description && { description }) });

const pageUrl = (description: string) => documented(z.nullable(z.string()), { description, examples: [null] });

/**
 * The answer of a list in pages. `previous` may be missing.
 * @throws TypeError for items without a name, as `resource` gives one
 */
export const pageOf = <T extends z.ZodMiniType>(item: T) => {
  const name = z.globalRegistry.get(item)?.id;
  if (name === undefined) throw new TypeError('the items of a page need a name: make them with resource()');
  const answer = resource(`${name}Page`, {
    count: integer('number of items in all pages', 1),
    next: pageUrl('URL of the next page'),
    previous: z.optional(pageUrl('URL of the previous page')),
    results: z.array(item),
  });
  return { answer, paged: true } as const;
};

type Def = z.core.$ZodTypes['_zod']['def'];

// zod's documented way to tell schemas apart.
const defOf = ({ _zod: { def } }: z.core.$ZodType) => def as Def;

/**
 * A value that fits the schema, made of the examples that its fields document.
 * @throws Error for a field without an example that can be had no other way
 */
export function exampleOf(schema: z.core.$ZodType): unknown {
  const examples = z.globalRegistry.get(schema)?.['examples'];
  return Array.isArray(examples) && examples.length > 0 ? examples[0] : built(defOf(schema));
}

function built(def: Def): unknown {
  if (def.type === 'object')
    return Object.fromEntries(Object.entries(def.shape).map(([name, field]) => [name, exampleOf(field)]));
  if (def.type === 'array') return [exampleOf(def.element)];
  if (def.type === 'enum') return Object.values(def.entries)[0];
  if (def.type === 'literal') return def.values[0];
  if (def.type === 'union' && def.options[0]) return exampleOf(def.options[0]);
  if ('innerType' in def) return exampleOf(def.innerType);
  throw new Error(`a schema of type ${def.type} has to document an example`);
}
