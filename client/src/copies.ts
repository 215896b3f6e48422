import type { Wire } from './request.ts';
import { type Connection, tokenOf } from './send.ts';

interface Kept {
  readonly etag: string;
  readonly value: unknown;
}

const MOST = 100;
/** Pages and their workers have an HTTP cache, which revalidates by itself. */
const hasHttpCache = () => 'document' in globalThis || 'WorkerGlobalScope' in globalThis;

/** Answers with their ETags, by account and path; those that were used last stay. */
export function createCopies(options: Connection & { readonly copies?: number | undefined }) {
  const most = options.copies ?? (hasHttpCache() ? 0 : MOST);
  const kept = new Map<string, Kept>();

  const put = (key: string, copy: Kept) => {
    kept.delete(key);
    kept.set(key, copy);
    const [oldest] = kept.keys();
    if (kept.size > most && oldest !== undefined) kept.delete(oldest);
  };

  return {
    /** The request with the ETag of its copy, what that copy is, and a way to keep another. */
    async of(wire: Wire) {
      const key = wire.method === 'GET' && most > 0 ? `${await tokenOf(options)} ${wire.path}` : undefined;
      const copy = key === undefined ? undefined : kept.get(key);
      if (key !== undefined && copy) put(key, copy);
      return {
        wire: copy ? { ...wire, headers: { 'if-none-match': copy.etag, ...wire.headers } } : wire,
        value: copy?.value,
        keep: <T>(value: T, etag: string | null): T => {
          if (key !== undefined && etag !== null) put(key, { etag, value });
          return value;
        },
      };
    },
  };
}
