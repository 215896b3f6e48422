import * as z from 'zod/mini';
import { documented, textLike } from './fields.ts';

/** Query parameters arrive as text; these check the text and leave it as it is. */

export const idText = textLike(/^-?\d{1,19}$/, { type: 'integer', format: 'int64' }, 'expected an integer');

/** An integer, from `minimum` on where that is given. */
export function integerText(description: string, minimum?: number) {
  const message = `expected an integer${minimum === undefined ? '' : ` of ${minimum} or more`}`;
  const isOne = (text: string) => /^-?0*\d{1,19}$/.test(text) && Number(text) >= (minimum ?? -Infinity);
  const schema = z.string().check(({ value: input, issues }) => {
    if (!isOne(input)) issues.push({ code: 'invalid_format', format: 'integer', input, message });
  });
  return documented(schema, { type: 'integer', ...(minimum !== undefined && { minimum }), description });
}

export const booleanText = (description: string) =>
  textLike(/^([Tt]rue|TRUE|[Ff]alse|FALSE|1|0)$/, { description }, 'expected True or False');

// A `+` that the client did not encode arrives as a space.
const INSTANT = /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+ -]\d\d:?\d\d)?)?$/i;

const isInstant = (text: string) => !Number.isNaN(Date.parse(INSTANT.exec(text)?.[1] ?? ''));

export const timestampText = (description: string) =>
  documented(z.string().check(z.refine(isInstant, 'expected an ISO 8601 date-time')), {
    format: 'date-time',
    description,
  });

export const anyText = (description = 'goes to the upstream as it is') => documented(z.string(), { description });

/** `ordering`: one of the documented fields, a `-` before it means descending. */
export const orderingText = (...fields: string[]) =>
  documented(z.enum(fields.flatMap((field) => [field, `-${field}`])), {
    description: 'a leading - means descending',
  });

export const paging = {
  page: integerText('page number, from 1', 1),
  page_size: integerText('items in a page; 25 when left out', 1),
};
