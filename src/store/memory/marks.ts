import { GatewayError } from '../../core/errors.ts';
import { type Mark, Marks } from '../marks.ts';
import type { OpenState, WriteEnded } from '../shared/engine.ts';
import type { AccountId, NewWrite, Tag } from '../store.ts';
import { Holdings } from '../bounded.ts';
import type { Owner } from '../owner.ts';

/** Nearly all of unknown outcome: those under way are as many as there are requests. */
const MAX_MARKS = 20_000;
const PART = 1 / 16;
const FULL_RETRY_SECONDS = 60;

interface Held {
  readonly marks: Marks;
  readonly owner: Owner;
}

/** Marks of one process. None is evicted: where there is no room for more, a write is refused. */
export class MemoryMarks {
  readonly #held = new Map<AccountId, Held>();
  readonly #holdings = new Holdings({ max: MAX_MARKS, part: PART });

  /** Whether what has these tags may be neither answered from a copy nor kept. */
  covers(account: AccountId, tags: readonly Tag[], now: number): boolean {
    return this.#held.size > 0 && this.#live(account, now)?.covers(tags) === true;
  }

  equalTo(write: NewWrite): OpenState | undefined {
    return this.#live(write.principal, write.now)?.equalTo(markOf(write), write.now);
  }

  /** @throws GatewayError `store_unavailable` */
  assertRoom({ principal, owner, now }: NewWrite): void {
    const holder = this.#held.get(principal)?.owner ?? owner;
    if (!this.#holdings.hasRoomFor(holder)) for (const other of this.#held.keys()) this.#live(other, now);
    if (this.#holdings.hasRoomFor(holder)) return;
    throw GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter: FULL_RETRY_SECONDS });
  }

  begin(write: NewWrite): void {
    const { principal, owner } = write;
    const held = this.#held.get(principal) ?? { marks: new Marks(), owner };
    this.#held.set(principal, held);
    this.#changed(principal, held, () => held.marks.set({ ...markOf(write), isUnknown: false }));
  }

  /** Says whether what the write touched needs new versions. */
  end(write: NewWrite, end: WriteEnded['end']): boolean {
    const held = this.#held.get(write.principal);
    if (!held?.marks.find(write.nonce)) return end !== 'not_sent';
    return this.#changed(write.principal, held, () => held.marks.end(end, markOf(write)));
  }

  /** Of an account, without those whose time has passed: their versions were changed when they became unknown. */
  #live(account: AccountId, now: number): Marks | undefined {
    const held = this.#held.get(account);
    if (held) this.#changed(account, held, () => held.marks.expire(now));
    return held?.marks;
  }

  #changed<T>(account: AccountId, { marks, owner }: Held, change: () => T): T {
    const before = marks.all.length;
    const result = change();
    this.#holdings.add(owner, marks.all.length - before);
    if (marks.all.length === 0) this.#held.delete(account);
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
