import { type LRUCache, PART, recent } from '../bounded.ts';
import { addressOwner, isAddress, type Owner } from '../owner.ts';
import { type AccountId, type Holder, requestsBy, type Window, type WindowUse } from '../store.ts';
import { Versions } from '../versions.ts';

/** What one process knows of an account, or of an address; its copies, marks and records aside. */
interface Account {
  /** In whose share it was made. */
  readonly owner: Owner;
  /** Absent until a copy is looked up. */
  versions: Versions | undefined;
  readonly windows: Record<Window['name'], { used: number; endsAt: number }>;
  coolsUntil: number;
}

const LEAST_ACCOUNTS = 50_000;
const ACCOUNT_BYTES = 1_024;

/** Ends that differ by less than this, in several replies, are ends of the same window. */
const SAME_END_MS = 1_000;

const BY_ADDRESS = requestsBy('address');

/**
 * Versions, windows and cooldowns of one process: of the accounts used last, and apart from them of the credentials that
 * the upstream has not accepted, of which an address has only a part.
 */
export class MemoryAccounts {
  readonly #max: number;
  readonly #accepted: LRUCache<AccountId, Account>;
  readonly #others: LRUCache<AccountId, Account>;
  /** Those of each address, the oldest first. */
  readonly #ofAddress = new Map<Owner, Set<AccountId>>();

  constructor(maxBytes = 0) {
    this.#max = Math.max(LEAST_ACCOUNTS, Math.floor(maxBytes / ACCOUNT_BYTES));
    this.#accepted = recent(this.#max);
    this.#others = recent(this.#max, ({ owner }, account) => this.#unlist(owner, account));
  }

  versionsOf(account: AccountId, owner: Owner): Versions {
    return (this.#of(account, owner).versions ??= new Versions());
  }

  /** Undefined for an account that was evicted: what was found of it before is then invalid. */
  knownVersions(account: AccountId): Versions | undefined {
    return this.#find(account)?.versions;
  }

  take(holder: Holder, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, now: number): WindowUse {
    const window = this.#windowOf(holder, name);
    if (window.endsAt <= now) {
      window.used = 0;
      window.endsAt = now + lengthMs;
    }
    return { used: ++window.used, endsAt: window.endsAt };
  }

  /** What is known of the account is in its own share from now on. */
  accept(id: AccountId): void {
    const account = this.#others.peek(id);
    if (!account) return;
    this.#others.delete(id);
    this.#accepted.set(id, account);
  }

  /** Takes over what all instances have counted. In the same window the higher count is right: ours may be pending. */
  learn(holder: Holder, name: string, { used, endsAt }: WindowUse): void {
    const window = this.#windowOf(holder, name);
    const isSame = Math.abs(window.endsAt - endsAt) < SAME_END_MS;
    window.used = isSame ? Math.max(window.used, used) : used;
    window.endsAt = endsAt;
  }

  coolDown({ principal, owner }: Holder, until: number): void {
    const account = this.#of(principal, owner);
    account.coolsUntil = Math.max(account.coolsUntil, until);
  }

  coolsUntil(account: AccountId): number {
    return this.#find(account)?.coolsUntil ?? 0;
  }

  usage() {
    const all = [...this.#accepted.values(), ...this.#others.values()];
    return { accounts: all.length, windows: all.reduce((sum, { windows }) => sum + Object.keys(windows).length, 0) };
  }

  #windowOf({ principal, owner }: Holder, name: string) {
    // An address is in a share of its own, apart from the credentials that are made up there.
    const { windows } = this.#of(principal, name === BY_ADDRESS ? addressOwner(principal) : owner);
    return (windows[name] ??= { used: 0, endsAt: 0 });
  }

  #find(id: AccountId): Account | undefined {
    return this.#accepted.get(id) ?? this.#others.get(id);
  }

  #of(id: AccountId, owner: Owner): Account {
    if (!isAddress(owner)) this.accept(id);
    const known = this.#find(id);
    if (known) return known;
    const made: Account = { owner, versions: undefined, windows: {}, coolsUntil: 0 };
    if (isAddress(owner)) this.#list(owner, id);
    (isAddress(owner) ? this.#others : this.#accepted).set(id, made);
    return made;
  }

  #list(address: Owner, id: AccountId): void {
    const ids = this.#ofAddress.get(address) ?? new Set();
    if (ids.size >= this.#max * PART) for (const oldest of ids) if (this.#others.delete(oldest)) break;
    this.#ofAddress.set(address, ids.add(id));
  }

  #unlist(address: Owner, id: AccountId): void {
    const ids = this.#ofAddress.get(address);
    if (ids?.delete(id) && ids.size === 0) this.#ofAddress.delete(address);
  }
}
