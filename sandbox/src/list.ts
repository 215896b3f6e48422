import { type Answer, type Call, ok } from './call.ts';
import { notFound } from './errors.ts';

const DEFAULT_SIZE = 25;
const LARGEST_SIZE = 100;

type Item = { readonly id: number | string };

type Scalar = string | number | boolean | null;

/** A list in pages. Parameters that are named after a field filter by it, or by `__isnull`; `ordering` sorts. */
export function list(items: readonly Item[], { query, url }: Call, ordering = '-id'): Answer {
  const found = items.filter((item) => [...query].every(([name, wanted]) => fits(item, name, wanted)));
  return ok(page(orderBy(found, query.get('ordering') || ordering), url));
}

function fits(item: Item, name: string, wanted: string): boolean {
  const [field = '', lookup] = name.split('__');
  const value = valueOf(item, field);
  if (value === undefined) return true;
  if (lookup !== undefined) return lookup !== 'isnull' || (value === null) === /^(true|1)$/i.test(wanted);
  return String(value ?? '').toLowerCase() === wanted.toLowerCase();
}

/** Looks a field up by the name that a query gives it. */
const valueOf = (item: Item, field: string) =>
  Object.entries(item).find(([name]) => name === field)?.[1] as Scalar | undefined;

/** Sorts by a field, descending with a leading `-`, and by id where it is equal. */
function orderBy(items: readonly Item[], ordering: string): Item[] {
  const field = ordering.replace(/^-/, '');
  const sign = ordering.startsWith('-') ? -1 : 1;
  return items.toSorted(
    (left, right) => sign * (compare(valueOf(left, field), valueOf(right, field)) || compare(left.id, right.id)),
  );
}

function compare(left: Scalar = null, right: Scalar = null): number {
  if (left === right) return 0;
  // As in PostgreSQL, nulls come last in ascending order.
  if (left === null) return 1;
  if (right === null) return -1;
  return left < right ? -1 : 1;
}

export const pageSize = (query: URLSearchParams): number =>
  Math.min(Number(query.get('page_size') ?? DEFAULT_SIZE), LARGEST_SIZE);

/** One page of `items`; `next` and `previous` are the asked-for URL with another `page`. */
function page(items: readonly Item[], url: URL) {
  const size = pageSize(url.searchParams);
  const pages = Math.max(1, Math.ceil(items.length / size));
  const number = Number(url.searchParams.get('page') ?? 1);
  if (number > pages) throw notFound('Invalid page.');
  return {
    count: items.length,
    next: number < pages ? withParameter(url, 'page', String(number + 1)) : null,
    previous: number > 1 ? withParameter(url, 'page', number === 2 ? null : String(number - 1)) : null,
    results: items.slice((number - 1) * size, number * size),
  };
}

export function withParameter(url: URL, name: string, value: string | null): string {
  const other = new URL(url);
  if (value === null) other.searchParams.delete(name);
  else other.searchParams.set(name, value);
  return other.href;
}
