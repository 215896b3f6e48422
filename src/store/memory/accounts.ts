import { BoundedMap } from '../bounded.ts';
import { addressOwner, type Owner } from '../owner.ts';
import { type AccountId, type Holder, requestsBy, type Window, type WindowUse } from '../store.ts';
import { Versions } from '../versions.ts';

/** What one process knows of an account, or of an address; its copies, marks and records aside. */
interface Account {
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

/** Versions, windows and cooldowns of one process. */
export class MemoryAccounts {
  readonly #accounts: BoundedMap<AccountId, Account>;
  #windows = 0;

  constructor(maxBytes = 0) {
    this.#accounts = new BoundedMap({
      max: Math.max(LEAST_ACCOUNTS, Math.floor(maxBytes / ACCOUNT_BYTES)),
      onGone: ({ windows }) => (this.#windows -= Object.keys(windows).length),
    });
  }

  versionsOf(account: AccountId, owner: Owner): Versions {
    return (this.#of(account, owner).versions ??= new Versions());
  }

  /** Undefined for an account that was evicted: what was found of it before is then invalid. */
  knownVersions(account: AccountId): Versions | undefined {
    return this.#accounts.peek(account)?.versions;
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
  accept(account: AccountId): void {
    this.#accounts.get(account, account);
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
    return this.#accounts.peek(account)?.coolsUntil ?? 0;
  }

  usage() {
    return { accounts: this.#accounts.size, windows: this.#windows };
  }

  #windowOf({ principal, owner }: Holder, name: string) {
    // An address is in a share of its own, apart from the credentials that are made up there.
    const share = name === BY_ADDRESS ? addressOwner(principal) : owner;
    const { windows } = this.#of(principal, share);
    const known = windows[name];
    if (known) return known;
    this.#windows++;
    return (windows[name] = { used: 0, endsAt: 0 });
  }

  #of(id: AccountId, owner: Owner): Account {
    const known = this.#accounts.get(id, owner);
    if (known) return known;
    const made: Account = { versions: undefined, windows: {}, coolsUntil: 0 };
    this.#accounts.set(id, made, owner);
    return made;
  }
}
