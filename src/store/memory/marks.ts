import { GatewayError } from '../../core/errors.ts';
import { type Mark, Marks } from '../marks.ts';
import type { Standing, WriteEnded } from '../shared/engine.ts';
import type { AccountId, NewWrite, Tag } from '../store.ts';

/** Nearly all of unknown outcome: those under way are as many as there are requests. */
const MAX_MARKS = 20_000;
const MAX_OF_PRINCIPAL = 1_000;
const FULL_RETRY_SECONDS = 60;

/** Marks of one process. None is evicted: where there is no room for more, a write is refused. */
export class MemoryMarks {
  readonly #marks = new Map<AccountId, Marks>();
  #count = 0;

  /** Whether what has these tags may be neither answered from a copy nor kept. */
  covers(account: AccountId, tags: readonly Tag[], now: number): boolean {
    return this.#count > 0 && this.#live(account, now)?.covers(tags) === true;
  }

  equalTo(write: NewWrite): Standing | undefined {
    return this.#live(write.principal, write.now)?.equalTo(markOf(write), write.now);
  }

  /** @throws GatewayError `store_unavailable` */
  assertRoom(principal: AccountId, now: number): void {
    const own = this.#live(principal, now)?.all.length ?? 0;
    if (this.#count >= MAX_MARKS) for (const other of this.#marks.keys()) this.#live(other, now);
    if (this.#count < MAX_MARKS && own < MAX_OF_PRINCIPAL) return;
    throw GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter: FULL_RETRY_SECONDS });
  }

  begin(write: NewWrite): void {
    const marks = this.#marks.get(write.principal) ?? new Marks();
    this.#marks.set(write.principal, marks);
    this.#changed(write.principal, marks, () => marks.set({ ...markOf(write), isUnknown: false }));
  }

  /** Says whether what the write touched needs new versions. */
  end(write: NewWrite, end: WriteEnded['end']): boolean {
    const marks = this.#marks.get(write.principal);
    if (!marks?.find(write.nonce)) return end !== 'not_sent';
    return this.#changed(write.principal, marks, () => marks.end(end, markOf(write)));
  }

  /** Of an account, without those whose time has passed: their versions were changed when they became unknown. */
  #live(account: AccountId, now: number): Marks | undefined {
    const marks = this.#marks.get(account);
    if (marks) this.#changed(account, marks, () => marks.expire(now));
    return marks;
  }

  #changed<T>(account: AccountId, marks: Marks, change: () => T): T {
    const before = marks.all.length;
    const result = change();
    this.#count += marks.all.length - before;
    if (marks.all.length === 0) this.#marks.delete(account);
    return result;
  }
}

const markOf = ({ nonce, tags, key, isPurchase, fingerprint, endsAt, until }: NewWrite): Omit<Mark, 'isUnknown'> => ({
  nonce,
  tags,
  purchase: isPurchase ? fingerprint : undefined,
  hasKey: key !== undefined,
  busyUntil: endsAt,
  until,
});
