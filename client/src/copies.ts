import type { Caller } from './send.ts';
import type { Wire } from './wire.ts';

/** What an overview says of a section. */
export interface SectionState {
  state?: string;
  age?: number;
  readonly code?: string;
}
type Sections = Readonly<Record<string, SectionState>>;

/**
 * Makes sections older by the time that has passed since they were read. With a 304 none is older than its `Age`, and one
 * that was read again meanwhile is no longer stale. Without a 304 nobody knows whether they still hold: they are stale.
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

export interface Copy {
  readonly kept?: Kept | undefined;
  /** Ask whether it still holds. */
  readonly headers?: Wire['headers'] | undefined;
  /** Takes what was answered, or corrects the ages in what a 304 has confirmed. */
  readonly hear?: (text: string, response: Response, value: unknown) => void;
  readonly keep?: (etag: string, text: string) => void;
}

/** `AsyncStorage`, or anything like it. */
export interface CopyStore {
  readonly getItem: (name: string) => string | null | undefined | Promise<string | null | undefined>;
  readonly setItem: (name: string, value: string) => unknown;
}

/**
 * `most`: how many, 100 unless given; those that were used last stay. `store`: where copies outlive the app; whoever can read
 * it can read them. `account`: any name of yours, never the key.
 */
export type CopiesOptions = { readonly most?: number | undefined } & (
  | { readonly store?: undefined; readonly account?: undefined }
  | { readonly store: CopyStore; readonly account: string }
);

/** Answers with their ETags, for `createClient`. */
export interface Copies {
  (wire: Wire, caller: Caller): Promise<Copy>;
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

/**
 * Texts of answers with their ETags, by path: of whoever calls, and forgotten when somebody else does. They are stored until a
 * sign-in, a sign-out, or a call of somebody else.
 */
export function keepCopies({ most = 100, store, account }: CopiesOptions = {}): Copies {
  let all = new Map<string, Kept>();
  let [owner, ready]: [Caller?, Promise<unknown>?] = [];
  let [isClosed, isDue] = [false, false]; // nothing is stored any more; all of it will be written
  let last: Promise<unknown> = Promise.resolve();
  /** One after another. A store that fails keeps what it has. */
  const inTurn = (act: () => unknown) => (last = last.then(act).catch(() => undefined));

  const write = () => {
    isDue = false;
    return store?.setItem(ITEM, isClosed ? '' : JSON.stringify([account, [...all]]));
  };
  const load = async () => {
    const [name, copies = []] = JSON.parse((await store?.getItem(ITEM)) || '[]') as [unknown?, [string, Kept][]?];
    if (name !== account) await write();
    else if (!isClosed) copies.forEach(([path, kept]) => all.set(path, kept));
  };
  const clear = () => {
    isClosed = true;
    all = new Map(); // what is under way does not come into it
    return inTurn(write);
  };
  const put = (path: string, kept: Kept) => {
    all.delete(path);
    all.set(path, kept);
    const [oldest = path] = all.keys();
    if (all.size > most) all.delete(oldest);
  };
  const copyFor = async ({ method, path, headers }: Wire, caller: Caller): Promise<Copy> => {
    if (method !== 'GET' && path.startsWith('/bff/v1/session')) await clear();
    if (owner !== caller) ready = owner === undefined ? inTurn(load) : clear();
    owner = caller;
    // Whoever sends an ETag of their own has the copy that belongs to it.
    if (method !== 'GET' || 'if-none-match' in headers) return {};
    const mine = all;
    await ready;
    const kept = mine === all ? all.get(path) : undefined;
    if (kept) put(path, kept);
    const keep = (etag: string, text: string) => {
      if (mine !== all) return;
      put(path, { etag, text, atMs: Date.now() });
      if (!isDue) void inTurn(write);
      isDue = true;
    };
    const hear = (text: string, response: Response, value: unknown) => {
      const etag = etagToKeep(response);
      if (response.status === 304) correctAges(sectionsIn(value), Date.now() - (kept?.atMs ?? 0), response);
      else if (etag) keep(etag, text);
    };
    return { kept, keep, hear, headers: kept && ifChanged(kept.etag) };
  };
  return Object.assign(copyFor, { clear: () => clear().then(write) }); // rejects if the store does
}
