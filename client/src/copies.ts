import type { Wire } from './request.ts';

interface Kept {
  readonly etag: string;
  readonly text: string;
}

const MOST = 100;
/** Pages and their workers have an HTTP cache, which revalidates by itself. */
const hasHttpCache = () => 'document' in globalThis || 'WorkerGlobalScope' in globalThis;

interface Copy {
  readonly headers?: Wire['headers'] | undefined;
  readonly text?: string | undefined;
  readonly keep?: (text: string, etag: string | null) => void;
}

/** Texts of answers with their ETags, by account and path; those that were used last stay. */
export function createCopies(most = hasHttpCache() ? 0 : MOST) {
  const kept = new Map<string, Kept>();

  const put = (key: string, copy: Kept) => {
    kept.delete(key);
    kept.set(key, copy);
    const [oldest = key] = kept.keys();
    if (kept.size > most) kept.delete(oldest);
  };

  /** For a try of this account: the copy, the headers that ask whether it still holds, and a way to keep another. */
  return ({ method, path, headers }: Wire, account: string | number): Copy => {
    // Whoever sends an ETag of their own has the copy that belongs to it.
    if (method !== 'GET' || most === 0 || 'if-none-match' in headers) return {};
    const key = JSON.stringify([account, path]);
    const copy = kept.get(key);
    if (copy) put(key, copy);
    return {
      // With an ETag but without this, fetch asks for a fresh copy: it adds `no-cache`.
      headers: copy && { 'if-none-match': copy.etag, 'cache-control': 'max-age=0' },
      text: copy?.text,
      keep(text, etag) {
        if (etag) put(key, { etag, text });
      },
    };
  };
}
