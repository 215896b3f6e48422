import { copyKey, copyMap } from '../memory/copies.ts';
import type { CacheKey, Entry, Version } from '../store.ts';

interface Copy {
  readonly entry: Entry;
  readonly version: Version;
  /** In the store's time. */
  readonly askedAt: number;
}

type Keyed = Pick<CacheKey, 'account' | 'key'>;

/** This instance's copies of answers. Each is used only where the engine's reply has the same version. */
export class NearCache {
  readonly #copies;

  /** `maxBytes` bounds keys and bodies together. */
  constructor(maxBytes: number) {
    this.#copies = copyMap<Copy>(maxBytes);
  }

  get(key: Keyed): Copy | undefined {
    return this.#copies.get(copyKey(key));
  }

  set(key: Keyed, copy: Copy): void {
    const known = this.#copies.peek(copyKey(key));
    if (known?.version === copy.version && known.askedAt > copy.askedAt) return;
    this.#copies.set(copyKey(key), copy, key.account);
  }

  usage() {
    return { bytes: this.#copies.held, entries: this.#copies.size, accounts: this.#copies.owners };
  }
}
