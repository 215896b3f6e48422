import { invalidPage } from './errors.ts';

const DEFAULT_SIZE = 25;
const LARGEST_SIZE = 100;

export interface Page<T> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: readonly T[];
}

/** An invalid size is ignored, as Django REST Framework does. */
export function pageSize(query: URLSearchParams): number {
  const size = Number(query.get('page_size') ?? DEFAULT_SIZE);
  return Number.isInteger(size) && size > 0 ? Math.min(size, LARGEST_SIZE) : DEFAULT_SIZE;
}

/** One page of `items`; `next` and `previous` are the asked-for URL with another `page`. */
export function paginate<T>(items: readonly T[], url: URL): Page<T> {
  const size = pageSize(url.searchParams);
  const pages = Math.max(1, Math.ceil(items.length / size));
  const page = Number(url.searchParams.get('page') ?? 1);
  if (!Number.isInteger(page) || page < 1 || page > pages) throw invalidPage();
  return {
    count: items.length,
    next: page < pages ? withParameter(url, 'page', String(page + 1)) : null,
    previous: page > 1 ? withParameter(url, 'page', page === 2 ? null : String(page - 1)) : null,
    results: items.slice((page - 1) * size, page * size),
  };
}

export function withParameter(url: URL, name: string, value: string | null): string {
  const other = new URL(url);
  if (value === null) other.searchParams.delete(name);
  else other.searchParams.set(name, value);
  return other.href;
}
