import type { Caller, Globals } from './send.ts';
import type { Wire } from './wire.ts';

/** What an overview says of a section. */
export interface SectionState {
  state?: string;
  age?: number;
  readonly code?: string;
}
type Sections = Readonly<Record<string, SectionState>>;

/**
 * Corrects what was said of sections so long ago, by a 304, whose `Age` is that of the oldest: none is older than that, and
 * none has grown older than the time that has passed. One that was read again meanwhile is no longer stale. Without a 304
 * nobody knows whether they still hold: they are stale.
 */
export function correctAges(sections: Sections, passedMs: number, response?: Response): void {
  const oldest = Number(response?.headers.get('Age') ?? Infinity);
  for (const section of Object.values(sections)) {
    if (section.age === undefined) continue;
    const grown = section.age + Math.max(0, Math.round(passedMs / 1000));
    if (!response) section.state = 'stale';
    else if (section.state === 'stale' && !section.code && oldest + 1 < grown) section.state = 'fresh';
    section.age = Math.min(oldest, grown);
  }
}

/** `atMs`: when it was answered. */
type Kept = Readonly<{ etag: string; text: string; atMs: number }>;

/** Of a try. */
export interface Copy {
  readonly kept?: Kept | undefined;
  /** Ask whether it still holds. */
  readonly headers?: Wire['headers'] | undefined;
  /** Takes what was answered, or corrects the ages in what a 304 has confirmed. */
  readonly hear?: (text: string, response: Response, value: unknown) => void;
  readonly keep?: (etag: string, text: string) => void;
}

/** `localStorage`, `AsyncStorage`, or anything like them. */
export interface CopyStore {
  readonly getItem: (name: string) => string | null | undefined | Promise<string | null | undefined>;
  readonly setItem: (name: string, value: string) => unknown;
}

export type CopiesOptions = {
  /** How many: 100 unless given. Those that were used last stay. */
  readonly most?: number | undefined;
} & (
  | { readonly store?: undefined; readonly account?: undefined }
  /** `store`: where copies outlive the app; whoever can read it can read them. `account`: any name of yours, never the key. */
  | { readonly store: CopyStore; readonly account: string }
);

/** Answers with their ETags, for `createClient`. */
export interface Copies {
  (wire: Wire, caller: Caller, globals: Globals): Promise<Copy>;
  /** At sign-out: forgets them, and overwrites what is stored. From then on nothing is stored. */
  clear(): Promise<unknown>;
}

const ITEM = 'portico-copies';
/** The ETag of an answer that may be kept. */
export const etagToKeep = ({ headers }: Response): string | null =>
  /no-store/i.test(headers.get('Cache-Control') ?? '') ? null : headers.get('ETag');

/** With an ETag but without `max-age=0`, fetch asks for a fresh copy: it adds `no-cache`. */
export const ifChanged = (etag: string) => ({ 'if-none-match': etag, 'cache-control': 'max-age=0' });

const sectionsIn = (value: unknown) => (value as { meta?: { sections?: Sections } } | null)?.meta?.sections ?? {};
const quietly = (promise: Promise<unknown>) => promise.catch(() => undefined); // a store that is full keeps what it has

/**
 * Texts of answers with their ETags, by path: of whoever calls, and forgotten when somebody else does. They are stored until a
 * sign-in, a sign-out, or a call of somebody else; in another tab too, which the store then shows.
 */
export function keepCopies({ most = 100, store, account }: CopiesOptions = {}): Copies {
  const all = new Map<string, Kept>();
  const textOf = (copies: unknown[]) => JSON.stringify([account, copies]);
  let [owner, ready]: [Caller?, Promise<unknown>?] = [];
  let [isSealed, isOurs, isDue] = [false, false, false]; // nothing is stored any more; what is stored is ours; it will be written
  let last: Promise<unknown> = Promise.resolve(); // of all that is done with the store, one after another
  const then = (act: () => unknown) => (last = last.then(act, act));

  const load = async () => {
    if (!store || isSealed) return;
    const [name, copies = []] = JSON.parse((await store.getItem(ITEM)) || '[]') as [unknown?, [string, Kept][]?];
    if (name === account) copies.forEach(([path, kept]) => all.set(path, kept));
    else await store.setItem(ITEM, textOf([]));
    isOurs = true;
  };
  const write = async () => {
    isDue = false;
    isOurs = !!(await store?.getItem(ITEM))?.startsWith(textOf([]).slice(0, -2));
    await (isOurs ? store?.setItem(ITEM, textOf([...all])) : all.clear());
  };
  const seal = () => {
    isSealed = true;
    all.clear();
    return then(() => {
      isOurs = false;
      all.clear(); // of what was being loaded
      return store?.setItem(ITEM, '');
    });
  };
  const put = (path: string, kept: Kept) => {
    all.delete(path);
    all.set(path, kept);
    const [oldest = path] = all.keys();
    if (all.size > most) all.delete(oldest);
  };
  const copyFor = async ({ method, path, headers }: Wire, caller: Caller, { Date }: Globals): Promise<Copy> => {
    if (method !== 'GET' && path.startsWith('/bff/v1/session')) await quietly(seal());
    // Whoever sends an ETag of their own has the copy that belongs to it.
    if (method !== 'GET' || 'if-none-match' in headers) return {};
    if (owner !== caller) ready = quietly(owner === undefined ? then(load) : seal());
    owner = caller;
    await ready;
    const kept = owner === caller ? all.get(path) : undefined;
    if (kept) put(path, kept);
    const keep = (etag: string, text: string) => {
      if (owner !== caller) return;
      put(path, { etag, text, atMs: Date.now() });
      if (isOurs && !isDue) void quietly(then(write));
      isDue = isOurs;
    };
    const hear = (text: string, response: Response, value: unknown) => {
      const etag = etagToKeep(response);
      if (response.status === 304) correctAges(sectionsIn(value), Date.now() - (kept?.atMs ?? 0), response);
      else if (etag) keep(etag, text);
    };
    return { kept, keep, hear, headers: kept && ifChanged(kept.etag) };
  };
  return Object.assign(copyFor, { clear: seal });
}
