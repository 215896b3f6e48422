import { GatewayError } from '../../core/errors.ts';
import { type AccountId, EVERYTHING, type NewWrite, type Tag } from '../store.ts';

/** A write under way, or one of unknown outcome until its time is over. */
interface Mark {
  readonly write: NewWrite;
  isUnknown: boolean;
}

/** Nearly all of unknown outcome: those under way are as many as there are requests. */
const MAX_MARKS = 20_000;
const MAX_OF_PRINCIPAL = 1_000;
const FULL_RETRY_SECONDS = 60;

/** Marks of one process. None is evicted: where there is no room for more, a write is refused. */
export class Marks {
  readonly #marks = new Map<AccountId, Mark[]>();
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Whether what has these tags may be neither answered from a copy nor kept. */
  covers(account: AccountId, tags: readonly Tag[], now: number): boolean {
    if (this.isEmpty) return false;
    return this.#live(account, now).some(({ write }) =>
      write.tags.some((tag) => tag === EVERYTHING || tags.includes(tag)),
    );
  }

  /** How an equal purchase stands that this one may not follow: with a key it meets those without, without one all. */
  equalTo({ principal, purchase, record, now }: NewWrite): 'under_way' | 'unknown' | undefined {
    if (purchase === undefined) return undefined;
    const equal = this.#live(principal, now).filter(({ write }) => write.purchase === purchase);
    const met = record ? equal.filter(({ write }) => !write.record) : equal;
    return met.some(({ isUnknown }) => !isUnknown) ? 'under_way' : met[0] && 'unknown';
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  assertRoom({ principal, now }: NewWrite): void {
    const own = this.#live(principal, now).length;
    if (this.#count >= MAX_MARKS) for (const other of this.#marks.keys()) this.#live(other, now);
    if (this.#count < MAX_MARKS && own < MAX_OF_PRINCIPAL) return;
    throw GatewayError.of('store_unavailable', { fault: 'withheld', retryAfter: FULL_RETRY_SECONDS });
  }

  add(write: NewWrite): void {
    const marks = this.#marks.get(write.principal);
    if (marks) marks.push({ write, isUnknown: false });
    else this.#marks.set(write.principal, [{ write, isUnknown: false }]);
    this.#count++;
  }

  /** From now on its time alone ends it. */
  leave({ principal, nonce }: NewWrite): void {
    const mark = this.#marks.get(principal)?.find(({ write }) => write.nonce === nonce);
    if (mark) mark.isUnknown = true;
  }

  remove({ principal, nonce }: NewWrite): void {
    const marks = this.#marks.get(principal) ?? [];
    const index = marks.findIndex(({ write }) => write.nonce === nonce);
    if (index < 0) return;
    marks.splice(index, 1);
    this.#count--;
    if (marks.length === 0) this.#marks.delete(principal);
  }

  /** Those of an account whose time is not over; the others go. */
  #live(account: AccountId, now: number): readonly Mark[] {
    const marks = this.#marks.get(account);
    if (!marks) return [];
    for (const { write } of marks.filter((mark) => mark.write.until <= now)) this.remove(write);
    return marks;
  }
}
