import { type Mark, Marks } from '../marks.ts';
import type { WriteEnded } from '../shared/engine.ts';
import type { AccountId, NewWrite, OpenState, Tag } from '../store.ts';
import { Holdings } from '../bounded.ts';
import type { Owner } from '../owner.ts';

/** Reached by writes of unknown outcome only: there are never so many requests under way. */
const MAX_MARKS = 20_000;
const OWNER_PART = 1 / 16;

type AccountMarks = { readonly marks: Marks; readonly owner: Owner };

/** Marks of one process. None is evicted: when there is no room for more, a write is refused. */
export class MemoryMarks {
  readonly #accounts = new Map<AccountId, AccountMarks>();
  readonly #holdings = new Holdings({ max: MAX_MARKS, part: OWNER_PART });

  /** Whether no copy with these tags may be used or kept. */
  covers(account: AccountId, tags: readonly Tag[], now: number): boolean {
    return this.#accounts.size > 0 && this.#live(account, now)?.covers(tags) === true;
  }

  equalTo(write: NewWrite): OpenState | undefined {
    return this.#live(write.principal, write.now)?.equalTo(markOf(write), write.now);
  }

  /** @throws GatewayError `store_unavailable` */
  assertRoom({ principal, owner, now }: NewWrite): void {
    const holder = this.#accounts.get(principal)?.owner ?? owner;
    this.#holdings.assertRoom(holder, () => {
      for (const other of this.#accounts.keys()) this.#live(other, now);
    });
  }

  begin(write: NewWrite): void {
    const { principal, owner } = write;
    const known = this.#accounts.get(principal) ?? { marks: new Marks(), owner };
    this.#accounts.set(principal, known);
    this.#changed(principal, known, () => known.marks.set(markOf(write)));
  }

  /** The account's marks are in its own share from now on. */
  accept(account: AccountId): void {
    const known = this.#accounts.get(account);
    if (!known) return;
    const { marks, owner } = known;
    this.#accounts.set(account, { marks, owner: account });
    this.#holdings.add(owner, -marks.all.length);
    this.#holdings.add(account, marks.all.length);
  }

  /** Returns whether the write's tags need new versions. */
  end(write: NewWrite, end: WriteEnded['end']): boolean {
    const known = this.#accounts.get(write.principal);
    if (!known?.marks.find(write.nonce)) return end !== 'not_sent';
    return this.#changed(write.principal, known, () => known.marks.end(end, markOf(write)));
  }

  /** An account's marks without expired ones, whose tags got new versions when their outcome became unknown. */
  #live(account: AccountId, now: number): Marks | undefined {
    const known = this.#accounts.get(account);
    if (known) this.#changed(account, known, () => known.marks.expire(now));
    return known?.marks;
  }

  #changed<T>(account: AccountId, { marks, owner }: AccountMarks, change: () => T): T {
    const before = marks.all.length;
    const result = change();
    this.#holdings.add(owner, marks.all.length - before);
    if (marks.all.length === 0) this.#accounts.delete(account);
    return result;
  }
}

const markOf = ({ nonce, tags, key, isPurchase, fingerprint, endsAt, until }: NewWrite): Mark => ({
  nonce,
  tags,
  purchase: isPurchase ? fingerprint : undefined,
  hasKey: key !== undefined,
  busyUntil: endsAt,
  until,
  isUnknown: false,
});
