import { Holdings, PART } from '../bounded.ts';
import { isAddress } from '../owner.ts';
import type { WriteBegun } from '../shared/engine.ts';
import type { AccountId, NewWrite, Tag, WriteEnd, WriteRecord } from '../store.ts';
import { beginOf, endedOf, Writes } from '../writes.ts';
import { MemoryRows } from './rows.ts';

interface Account {
  readonly rows: MemoryRows;
  readonly writes: Writes<WriteRecord>;
}

/** Of all rows of a process. Credentials that were never accepted have half as much, of their own. */
const MAX_BYTES = 67_108_864;
/** Between searches for what has expired, which take milliseconds. */
const SWEEP_MS = 1_000;

/** The writes of all accounts of this process. */
export class MemoryWrites {
  readonly #accounts = new Map<AccountId, Account>();
  readonly #room = new Holdings({ max: MAX_BYTES, part: PART });
  readonly #roomOfOthers = new Holdings({ max: MAX_BYTES / 2, part: PART });
  readonly #renew: (account: AccountId, tags: readonly Tag[]) => void;
  #sweptAt = -Infinity;

  /** `renew`: called when what has these tags is no longer valid. */
  constructor(renew: (account: AccountId, tags: readonly Tag[]) => void) {
    this.#renew = renew;
  }

  get records(): number {
    return [...this.#accounts.values()].reduce((sum, { rows }) => sum + rows.records, 0);
  }

  /** Whether no copy with these tags may be used or kept. Without `now`, as it was when somebody last asked. */
  covers(account: AccountId, tags: readonly Tag[], now?: number): boolean {
    const known = this.#accounts.get(account);
    if (known && now !== undefined) known.writes.expire(now);
    this.#forgetEmpty(account, known);
    return known?.writes.covers(tags) === true;
  }

  /** `cooldownMs`: how much longer the upstream wants no calls of the account. */
  begin(write: NewWrite, cooldownMs: number): WriteBegun<WriteRecord> {
    const { principal, now } = write;
    const account = this.#of(write);
    account.writes.expire(now);
    const begin = beginOf(write, Infinity); // a record under way does not expire, however long that is
    let begun = account.writes.begin(begin, now, cooldownMs);
    if (begun.is === 'full') {
      account.rows.dropExpired(now);
      this.#sweep(now);
      begun = account.writes.begin(begin, now, cooldownMs);
    }
    this.#accounts.set(principal, account);
    this.#forgetEmpty(principal, account);
    return begun;
  }

  end(write: NewWrite, end: WriteEnd): void {
    const account = this.#of(write);
    account.writes.end(endedOf(write, end, write.now), write.now);
    this.#forgetEmpty(write.principal, account);
  }

  /** The account's records and marks are in its own share from now on. */
  accept(account: AccountId): void {
    this.#accounts.get(account)?.rows.give(account);
  }

  #of({ principal, owner }: NewWrite): Account {
    const known = this.#accounts.get(principal);
    if (known) return known;
    const rows = new MemoryRows((one) => (isAddress(one) ? this.#roomOfOthers : this.#room), owner);
    const made = { rows, writes: new Writes(rows, (tags) => this.#renew(principal, tags)) };
    this.#accounts.set(principal, made);
    return made;
  }

  #sweep(now: number): void {
    if (Math.abs(now - this.#sweptAt) < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const [id, account] of this.#accounts) {
      account.writes.expire(now);
      account.rows.dropExpired(now);
      this.#forgetEmpty(id, account);
    }
  }

  #forgetEmpty(id: AccountId, account: Account | undefined): void {
    if (account?.rows.size === 0) this.#accounts.delete(id);
  }
}
