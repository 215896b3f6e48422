import { BoundedMap } from '../bounded.ts';
import { sizeOf } from '../memory/size.ts';
import type { CacheKey, Entry, Version } from '../store.ts';

interface Copy {
  readonly entry: Entry;
  readonly version: Version;
  /** In the store's time. */
  readonly askedAt: number;
}

type Keyed = Pick<CacheKey, 'account' | 'key'>;

const COPY_OVERHEAD_BYTES = 700;

/** This instance's copies of answers. Each is used only where the engine's reply has the same version. */
export class NearCache {
  readonly #copies: BoundedMap<string, Copy>;

  /** `maxBytes` bounds keys and bodies together. */
  constructor(maxBytes: number) {
    this.#copies = new BoundedMap({
      max: maxBytes,
      sizeOf: ({ entry, version }, key) => sizeOf(key) + sizeOf(entry.text) + version.length + COPY_OVERHEAD_BYTES,
    });
  }

  get(key: Keyed): Copy | undefined {
    return this.#copies.get(keyOf(key));
  }

  set(key: Keyed, copy: Copy): void {
    const known = this.#copies.peek(keyOf(key));
    if (known?.version === copy.version && known.askedAt > copy.askedAt) return;
    this.#copies.set(keyOf(key), copy, key.account);
  }

  usage() {
    return { bytes: this.#copies.held, entries: this.#copies.size, accounts: this.#copies.owners };
  }
}

/** The account's hash has no space. */
const keyOf = ({ account, key }: Keyed) => `${account} ${key}`;
