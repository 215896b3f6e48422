import type { Wire } from './request.ts';

interface Kept {
  readonly etag: string;
  readonly value: unknown;
}

const MOST = 100;
/** Pages and their workers have an HTTP cache, which revalidates by itself. */
const hasHttpCache = () => 'document' in globalThis || 'WorkerGlobalScope' in globalThis;

interface Copy {
  readonly headers?: Wire['headers'] | undefined;
  readonly value?: unknown;
  readonly keep: (value: unknown, etag: string | null) => unknown;
}

const NONE: Copy = { keep: (value) => value };

/** Answers with their ETags, by account and path; those that were used last stay. */
export function createCopies(most = hasHttpCache() ? 0 : MOST) {
  const kept = new Map<string, Kept>();

  const put = (key: string, copy: Kept) => {
    kept.delete(key);
    kept.set(key, copy);
    const [oldest] = kept.keys();
    if (kept.size > most && oldest !== undefined) kept.delete(oldest);
  };

  /** For a try with these headers: the copy, the headers that ask whether it still holds, and a way to keep another. */
  return ({ method, path }: Wire, { authorization, cookie }: Wire['headers']): Copy => {
    if (method !== 'GET' || most === 0) return NONE;
    const key = JSON.stringify([authorization, cookie, path]);
    const copy = kept.get(key);
    if (copy) put(key, copy);
    return {
      // With an ETag but without this, fetch asks for a fresh copy: it adds `no-cache`.
      headers: copy && { 'if-none-match': copy.etag, 'cache-control': 'max-age=0' },
      value: copy?.value,
      keep(value, etag) {
        if (etag) put(key, { etag, value });
        return value;
      },
    };
  };
}
