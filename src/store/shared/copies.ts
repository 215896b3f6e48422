import { type BoundedMap, boundedMap } from '../bounded.ts';
import { sizeOf } from '../memory/size.ts';
import type { AccountId, Entry, Place, Versions } from '../store.ts';

interface Copy {
  readonly entry: Entry;
  readonly versions: Versions;
}

type Spot = Pick<Place, 'account' | 'key'>;

const COPY_OVERHEAD_BYTES = 700;

/**
 * Copies of what the engine keeps, so that it need not come again. Each is good only while the engine says that its
 * versions hold.
 */
export class Copies {
  readonly #copies: BoundedMap<string, Copy>;
  /** How many copies of each account there are. */
  readonly #accounts = new Map<AccountId, number>();

  /** `maxBytes` bounds keys and bodies together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#copies = boundedMap({
      max: Math.max(1, maxBytes),
      sizeOf: ({ entry, versions }, key) => sizeOf(key) + sizeOf(entry.text) + versions.length + COPY_OVERHEAD_BYTES,
      onGone: (_, key) => this.#count(accountIn(key), -1),
    });
  }

  get(spot: Spot): Copy | undefined {
    return this.#copies.get(keyOf(spot));
  }

  set(spot: Spot, copy: Copy): void {
    const key = keyOf(spot);
    if (!this.#copies.has(key)) this.#count(spot.account, 1);
    this.#copies.set(key, copy);
    if (!this.#copies.has(key)) this.#count(spot.account, -1); // too large to be held at all
  }

  delete(spot: Spot): void {
    this.#copies.delete(keyOf(spot));
  }

  usage() {
    return { bytes: this.#copies.calculatedSize, entries: this.#copies.size, accounts: this.#accounts.size };
  }

  #count(account: AccountId, more: 1 | -1): void {
    const count = (this.#accounts.get(account) ?? 0) + more;
    if (count > 0) this.#accounts.set(account, count);
    else this.#accounts.delete(account);
  }
}

/** The account's hash holds no space. */
const keyOf = ({ account, key }: Spot) => `${account} ${key}`;

const accountIn = (key: string) => key.slice(0, key.indexOf(' '));
