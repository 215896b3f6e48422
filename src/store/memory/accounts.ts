import { type LRUCache, PART, recent } from '../bounded.ts';
import { addressOwner, isAddress, requestsBy } from '../store.ts';
import type { AccountId, OwnedAccount, Owner, Tag, Window, WindowUse } from '../store.ts';
import { Versions } from '../writes.ts';

/** Requests that the shared store has counted already. */
interface Advance {
  left: number;
  readonly isOver: () => boolean;
}

interface WindowState {
  used: number;
  endsAt: number;
  advance?: Advance;
}

/** What one process knows of an account; its copies, marks and records aside. */
interface State {
  /** In whose share it was made. */
  readonly owner: Owner;
  readonly versions: Versions;
  readonly windows: Record<Window['name'], WindowState>;
  coolsUntil: number;
}

const LEAST_ACCOUNTS = 50_000;
const ACCOUNT_BYTES = 1_024;
const MAX_TAGS = 16;

/** Ends that differ by less than this, in several replies, are ends of the same window. */
const SAME_END_MS = 1_000;

const BY_ADDRESS = requestsBy('address');

/**
 * Versions, windows and cooldowns of one process: of the accounts used last, and apart from them of the credentials that
 * the upstream has not accepted, of which an address has only a part.
 */
export class MemoryAccounts {
  readonly #max: number;
  readonly #accepted: LRUCache<AccountId, State>;
  readonly #others: LRUCache<AccountId, State>;
  /** Those of each address, the oldest first. */
  readonly #ofAddress = new Map<Owner, Set<AccountId>>();

  constructor(maxBytes = 0) {
    this.#max = Math.max(LEAST_ACCOUNTS, Math.floor(maxBytes / ACCOUNT_BYTES));
    this.#accepted = recent(this.#max);
    this.#others = recent(this.#max, ({ owner }, account) => this.#unlist(owner, account));
  }

  /** New ones for an account that was evicted: what was found of it before is then invalid. */
  versionsOf(account: AccountId, owner: Owner): Versions {
    return this.#of(account, owner).versions;
  }

  renew(account: AccountId, tags: readonly Tag[]): void {
    this.#find(account)?.versions.renew(tags, MAX_TAGS);
  }

  take(owned: OwnedAccount, { name, lengthMs }: Window, now: number): WindowUse {
    const window = this.#windowOf(owned, name);
    if (window.endsAt <= now) {
      window.used = 0;
      window.endsAt = now + lengthMs;
    }
    return { used: ++window.used, endsAt: window.endsAt };
  }

  /** Counts a request that the store has counted in advance; undefined where none is left. */
  takeAdvance(owned: OwnedAccount, { name, limit }: Window): WindowUse | undefined {
    const window = this.#windowOf(owned, name);
    const { advance, endsAt } = window;
    if (!advance || advance.left === 0 || advance.isOver()) return undefined;
    advance.left--;
    window.used = Math.min(window.used + 1, limit); // replies to other questions may have counted it already
    return { used: window.used, endsAt };
  }

  /** In the place of one that is over, or has less. */
  learnAdvance(owned: OwnedAccount, { name }: Window, advance: Advance): void {
    const window = this.#windowOf(owned, name);
    if (!window.advance || window.advance.isOver() || window.advance.left < advance.left) window.advance = advance;
  }

  /** What is known of the account is in its own share from now on. */
  accept(account: AccountId): void {
    const state = this.#others.peek(account);
    if (!state) return;
    this.#others.delete(account);
    this.#accepted.set(account, state);
  }

  /** Takes over what all instances have counted. In the same window the higher count is right: ours may be pending. */
  learn(owned: OwnedAccount, name: string, { used, endsAt }: WindowUse): void {
    const window = this.#windowOf(owned, name);
    const isSame = Math.abs(window.endsAt - endsAt) < SAME_END_MS;
    window.used = isSame ? Math.max(window.used, used) : used;
    window.endsAt = endsAt;
  }

  coolDown({ account, owner }: OwnedAccount, until: number): void {
    const state = this.#of(account, owner);
    state.coolsUntil = Math.max(state.coolsUntil, until);
  }

  coolsUntil(account: AccountId): number {
    return this.#find(account)?.coolsUntil ?? 0;
  }

  usage() {
    const all = [...this.#accepted.values(), ...this.#others.values()];
    const windows = all.reduce((sum, state) => sum + Object.keys(state.windows).length, 0);
    return { accounts: all.length, accountsLimit: 2 * this.#max, windows };
  }

  #windowOf({ account, owner }: OwnedAccount, name: string) {
    // An address is in a share of its own, apart from the credentials that are made up there.
    const { windows } = this.#of(account, name === BY_ADDRESS ? addressOwner(account) : owner);
    return (windows[name] ??= { used: 0, endsAt: 0 });
  }

  #find(account: AccountId): State | undefined {
    return this.#accepted.get(account) ?? this.#others.get(account);
  }

  #of(account: AccountId, owner: Owner): State {
    const state = this.#find(account);
    if (state) return state;
    const made: State = { owner, versions: new Versions(), windows: {}, coolsUntil: 0 };
    if (isAddress(owner)) this.#list(owner, account);
    (isAddress(owner) ? this.#others : this.#accepted).set(account, made);
    return made;
  }

  #list(address: Owner, account: AccountId): void {
    const accounts = this.#ofAddress.get(address) ?? new Set();
    if (accounts.size >= this.#max * PART) for (const oldest of accounts) if (this.#others.delete(oldest)) break;
    this.#ofAddress.set(address, accounts.add(account));
  }

  #unlist(address: Owner, account: AccountId): void {
    const accounts = this.#ofAddress.get(address);
    if (accounts?.delete(account) && accounts.size === 0) this.#ofAddress.delete(address);
  }
}
