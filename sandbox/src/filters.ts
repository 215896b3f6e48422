import * as z from 'zod';
import { checkFields } from './body.ts';
import { fieldRefused } from './errors.ts';
import { parseInstant } from './time.ts';

/** Looks a field up by the name that a query gives it. */
const valueOf = (item: object, field: string): unknown => Object.entries(item).find(([name]) => name === field)?.[1];

type Comparison = (value: unknown, wanted: string) => boolean;

/** Lookups that a filter may end in, as in Django: `created_at__gte=…`. */
const LOOKUPS: Readonly<Record<string, Comparison>> = {
  exact: (value, wanted) => (value === null ? wanted === '' : difference(value, wanted) === 0),
  gte: (value, wanted) => value !== null && difference(value, wanted) >= 0,
  gt: (value, wanted) => value !== null && difference(value, wanted) > 0,
  lte: (value, wanted) => value !== null && difference(value, wanted) <= 0,
  lt: (value, wanted) => value !== null && difference(value, wanted) < 0,
  isnull: (value, wanted) => (value === null) === /^(true|1)$/i.test(wanted),
};

/** Compares a field with the text of a query, in the kind of the field; NaN when the text is not of that kind. */
function difference(value: unknown, wanted: string): number {
  if (typeof value === 'number') return value - (parseNumber(wanted) ?? parseInstant(wanted) ?? Number.NaN);
  if (typeof value === 'boolean') return Number(value) - Number(/^(true|1)$/i.test(wanted));
  return compare(String(value), wanted);
}

const parseNumber = (text: string): number | null => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : null);

function compare(left: unknown, right: unknown): number {
  if (left === right) return 0;
  // As in PostgreSQL, nulls come last in ascending order.
  if (left === null) return 1;
  if (right === null) return -1;
  return (left as number) < (right as number) ? -1 : 1;
}

/** Keeps the items that match every parameter named after one of their fields; other parameters are ignored. */
export function filterByFields<T extends object>(items: readonly T[], query: URLSearchParams): T[] {
  const wanted = [...query].map(([name, text]) => {
    const [, field = name, lookup = 'exact'] = /^(.+?)__([a-z]+)$/.exec(name) ?? [];
    return { field, matches: LOOKUPS[lookup], text };
  });
  return items.filter((item) =>
    wanted.every(({ field, matches, text }) => !matches || !(field in item) || matches(valueOf(item, field), text)),
  );
}

/** Sorts by a field, descending with a leading `-`, and by id where it is equal. */
export function orderBy<T extends { id: number }>(items: readonly T[], ordering: string): T[] {
  const field = ordering.replace(/^-/, '');
  const sign = ordering.startsWith('-') ? -1 : 1;
  return items.toSorted(
    (left, right) => sign * (compare(valueOf(left, field), valueOf(right, field)) || left.id - right.id),
  );
}

/** Ordering by documented fields: anything else is refused. */
export function documentedOrdering(query: URLSearchParams, fields: readonly string[], fallback: string): string {
  const ordering = z.enum(fields.flatMap((field) => [field, `-${field}`]));
  return checkFields(z.object({ ordering }), { ordering: query.get('ordering') || fallback }).ordering;
}

/** Ordering where the document names no fields: by any field of the items; anything else is ignored. */
export function openOrdering(query: URLSearchParams, sample: object | undefined, fallback: string): string {
  const ordering = query.get('ordering') ?? fallback;
  return sample && ordering.replace(/^-/, '') in sample ? ordering : fallback;
}

/** An integer parameter; `null` when it is absent. */
export function integerParameter(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (!/^-?\d{1,19}$/.test(text)) throw fieldRefused(name, 'expected an integer', 'invalid_format');
  return Number(text);
}

export function booleanParameter(query: URLSearchParams, name: string): boolean | null {
  const text = query.get(name) ?? '';
  if (/^(true|1)$/i.test(text)) return true;
  return /^(false|0)$/i.test(text) ? false : null;
}
