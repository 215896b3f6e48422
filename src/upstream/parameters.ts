import * as z from 'zod';

/** Query parameters arrive as text; these check the text and leave it as it is. */

export const integerText = z
  .string()
  .regex(/^-?\d{1,19}$/, 'expected an integer')
  .meta({ type: 'integer' });

const positiveIntegerText = z
  .string()
  .regex(/^0*[1-9]\d{0,18}$/, 'expected an integer of 1 or more')
  .meta({ type: 'integer', minimum: 1 });

export const booleanText = z
  .string()
  .regex(/^(true|false|1|0)$/i, 'expected True or False')
  .meta({ description: 'True or False' });

// A `+` that the client did not encode arrives as a space.
const INSTANT = /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+ -]\d\d:?\d\d)?)?$/i;

export const timestampText = z
  .string()
  .refine((text) => !Number.isNaN(Date.parse(INSTANT.exec(text)?.[1] ?? '')), 'expected an ISO 8601 date-time')
  .meta({ format: 'date-time' });

export const anyText = z.string();

/** `ordering`: one of the documented fields, a `-` before it means descending. */
export const orderingText = (...fields: string[]) =>
  z.enum(fields.flatMap((field) => [field, `-${field}`])).meta({ description: 'a leading - means descending' });

export const planId = { plan_id: integerText.meta({ description: 'plan to act on; the default plan when left out' }) };

export const paging = {
  page: positiveIntegerText.meta({ description: 'page number, from 1' }),
  page_size: positiveIntegerText.meta({ description: 'items in a page; 25 when left out' }),
};
