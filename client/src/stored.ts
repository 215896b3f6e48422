export interface Kept {
  readonly etag: string;
  readonly text: string;
  /** When it was answered. */
  readonly atMs: number;
}

/** `localStorage`, `AsyncStorage`, or anything like them. */
export interface CopyStore {
  readonly getItem: (name: string) => string | null | undefined | Promise<string | null | undefined>;
  readonly setItem: (name: string, value: string) => unknown;
}

/** Where copies outlive the app. Whoever can read the store can read them. */
export type StoreOptions =
  | { readonly store?: undefined }
  | {
      readonly store: CopyStore;
      /** Whose copies they are: any name of yours, never the key. Another name finds nothing, and overwrites what is there. */
      readonly account: string;
    };

const ITEM = 'portico-copies';

/** What keeps copies of whoever calls, and nothing beyond the app. */
const NOWHERE = { nameOf: (caller: string | number) => caller, save: () => {}, seal: async () => {} };

/**
 * Keeps what is in `kept` in a store as well: of the account that is the first to read. A sign-in or sign-out, or a read as
 * another one, overwrites it all, and from then on nothing is kept. So it is where another tab has done that.
 */
export function openStore(options: StoreOptions, kept: Map<string, Kept>) {
  if (!options.store) return NOWHERE;
  const { store, account } = options;
  const textOf = (copies: Iterable<[string, Kept]>) => JSON.stringify([account, [...copies]]);
  const beginning = textOf([]).slice(0, -2);
  let owner: string | number | undefined;
  let isSealed = false;
  let isThere = false; // what is stored begins like ours, unless another tab has overwritten it

  const load = async () => {
    const [name, copies] = JSON.parse((await store.getItem(ITEM)) || '[]') as [unknown?, [string, Kept][]?];
    if (name !== account) await store.setItem(ITEM, textOf([]));
    else for (const [key, copy] of copies ?? []) kept.set(key, copy);
    isThere = true;
  };
  const write = async () => {
    isDue = false;
    if (isSealed) return store.setItem(ITEM, '');
    if (isThere && !(await store.getItem(ITEM))?.startsWith(beginning)) isSealed = true;
    return isSealed || store.setItem(ITEM, textOf(kept));
  };
  let isDue = false;
  let loaded: Promise<unknown> | undefined;
  let last: Promise<unknown> = Promise.resolve(); // of all that is done with the store, one after another
  const then = (act: () => unknown) => (last = last.then(act, act));
  const save = () => {
    if (!isDue) void then(write).catch(() => undefined); // a store that is full keeps what it has
    isDue = true;
  };
  const seal = async () => {
    isSealed = true;
    await then(write);
  };

  return {
    /** What its copies are kept under; undefined if none are. */
    async nameOf(caller: string | number): Promise<string | undefined> {
      owner ??= caller;
      if (owner !== caller && !isSealed) await seal().catch(() => undefined);
      await (loaded ??= then(load).catch(() => undefined));
      return isSealed ? undefined : '';
    },
    save,
    seal,
  };
}
