import { correctAges, type SectionState } from './ages.ts';
import type { Globals } from './globals.ts';
import type { Wire } from './request.ts';
import { type Kept, openStore, type StoreOptions } from './stored.ts';

/** Of a try. */
export interface Copy {
  /** Ask whether it still holds. */
  readonly headers?: Wire['headers'] | undefined;
  readonly text?: string | undefined;
  /** Takes what was answered, or corrects the ages in what a 304 has confirmed. */
  readonly keep?: (text: string, response: Response, value: unknown) => void;
}

export type CopiesOptions = StoreOptions & {
  /** How many: 100 unless given. Those that were used last stay. */
  readonly most?: number | undefined;
};

/** Answers with their ETags, for `createClient`. */
export interface Copies {
  (wire: Wire, caller: string | number, globals: Globals): Promise<Copy>;
  /** At sign-out: forgets them, and overwrites what is stored. From then on nothing is stored. */
  clear(): Promise<void>;
}

/** Texts of answers with their ETags, by account and path. A client's or several clients'. */
export function keepCopies(options: CopiesOptions = {}): Copies {
  const { most = 100 } = options;
  const kept = new Map<string, Kept>();
  const stored = openStore(options, kept);

  const put = (key: string, copy: Kept) => {
    kept.delete(key);
    kept.set(key, copy);
    const [oldest = key] = kept.keys();
    if (kept.size > most) kept.delete(oldest);
  };

  /** For a try of this account. */
  const copyFor = async ({ method, path, headers }: Wire, caller: string | number, globals: Globals): Promise<Copy> => {
    if (method !== 'GET' && path.startsWith('/bff/v1/session')) await stored.seal().catch(() => undefined);
    // Whoever sends an ETag of their own has the copy that belongs to it.
    if (method !== 'GET' || 'if-none-match' in headers) return {};
    const name = await stored.nameOf(caller);
    if (name === undefined) return {};
    const key = JSON.stringify([name, path]);
    const copy = kept.get(key);
    if (copy) put(key, copy);
    return {
      // With an ETag but without this, fetch asks for a fresh copy: it adds `no-cache`.
      headers: copy && { 'if-none-match': copy.etag, 'cache-control': 'max-age=0' },
      text: copy?.text,
      keep(text, response, value) {
        const atMs = globals.Date.now();
        const etag = response.headers.get('ETag');
        if (response.status === 304) {
          if (copy && path.startsWith('/bff/')) correctAges(sectionsIn(value), atMs - copy.atMs, response);
        } else if (etag && !/no-store/i.test(response.headers.get('Cache-Control') ?? '')) {
          put(key, { etag, text, atMs });
          stored.save();
        }
      },
    };
  };
  return Object.assign(copyFor, {
    clear() {
      kept.clear();
      return stored.seal();
    },
  });
}

const sectionsIn = (value: unknown) =>
  (value as { readonly meta?: { readonly sections?: Record<string, SectionState> } } | null)?.meta?.sections ?? {};
