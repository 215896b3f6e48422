import { type BoundedMap, boundedMap } from '../bounded.ts';
import { sizeOf } from '../memory/size.ts';
import type { AccountId, Entry, Place, Versions } from '../store.ts';

interface Copy {
  readonly entry: Entry;
  readonly versions: Versions;
}

const COPY_OVERHEAD_BYTES = 600;

/** Copies of what the engine keeps, so that it need not come again. Each is good only while the engine says that its versions hold. */
export class Copies {
  readonly #copies: BoundedMap<string, Copy>;

  /** `maxBytes` bounds keys and bodies together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#copies = boundedMap({
      maxSize: Math.max(1, maxBytes),
      sizeOf: ({ entry, versions }, key) => sizeOf(key) + sizeOf(entry.text) + versions.length + COPY_OVERHEAD_BYTES,
    });
  }

  get({ account, key }: Pick<Place, 'account' | 'key'>): Copy | undefined {
    return this.#copies.get(keyOf(account, key));
  }

  set({ account, key }: Pick<Place, 'account' | 'key'>, copy: Copy): void {
    this.#copies.set(keyOf(account, key), copy);
  }

  delete({ account, key }: Pick<Place, 'account' | 'key'>): void {
    this.#copies.delete(keyOf(account, key));
  }

  usage() {
    return { bytes: this.#copies.calculatedSize, entries: this.#copies.size };
  }
}

const keyOf = (account: AccountId, key: string) => `${account} ${key}`;
