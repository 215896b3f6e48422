import * as z from 'zod';

/** `[description, example]` of a documented field; both go into the OpenAPI document, the example into the tests too. */
type Note<T> = [description: string, example: T];

const note = <T>([description, example]: Note<T>) => ({ description, examples: [example] });

/** An integer of any size: identifiers beyond 2^53 are legal JSON, and zod's own `int` refuses them. */
export const integer = (...of: Note<number>) =>
  z
    .number()
    .refine(Number.isInteger, 'expected an integer')
    .meta({ type: 'integer', ...note(of) });

export const number = (...of: Note<number>) => z.number().meta(note(of));

export const text = (...of: Note<string>) => z.string().meta(note(of));

export const flag = (...of: Note<boolean>) => z.boolean().meta(note(of));

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$/;

/** ISO 8601 date-time with a numeric offset and microseconds (`upstream-api.md`, Conventions). */
export const timestamp = (...of: Note<string>) =>
  z
    .string()
    .regex(TIMESTAMP)
    .meta({ format: 'date-time', ...note(of) });

/** A duration written `[DD] [HH:MM:SS]`, for example `"7 00:00:00"`. */
export const duration = (...of: Note<string>) =>
  z
    .string()
    .regex(/^(\d+ )?\d\d:\d\d:\d\d(\.\d+)?$/)
    .meta(note(of));

/** A decimal that the document calls a string in JSON. */
export const decimal = (...of: Note<string>) =>
  z
    .string()
    .regex(/^-?\d+(\.\d+)?$/)
    .meta(note(of));

/** An object whose keys are codes and whose values are counts: country code to integer, protocol to integer. */
export const counts = (...of: Note<Record<string, number>>) => z.record(z.string(), integer('count', 1)).meta(note(of));

/**
 * A documented resource: its fields are required, what the document does not list is let through.
 * `name` becomes its component in the OpenAPI document.
 */
export const resource = <S extends z.core.$ZodLooseShape>(name: string, shape: S, description?: string) =>
  z.looseObject(shape).meta({ id: name, ...(description && { description }) });

/** The paginated list format (`upstream-api.md`, Conventions). Activity has no `previous`. */
export const pageOf = <T extends z.ZodType>(item: T) =>
  z.looseObject({
    count: integer('number of items in all pages', 1),
    next: z
      .string()
      .nullable()
      .meta({ description: 'URL of the next page', examples: [null] }),
    previous: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'URL of the previous page', examples: [null] }),
    results: z.array(item),
  });
