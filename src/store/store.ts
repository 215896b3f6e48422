import { GatewayError } from '../core/errors.ts';
import type { MaybePromise } from '../core/runtime.ts';
import type { Account } from './account.ts';
import { type Decide, isChange } from './changes.ts';
import { Instance, WRITE_MS } from './instance.ts';
import { begun, ended, outcomeOf } from './note.ts';
import type {
  AccountId,
  Begun,
  CacheKey,
  Entry,
  KeyQuestion,
  NewWrite,
  SnapshotRequest,
  Usage,
  WindowUse,
  WriteEnd,
} from './port.ts';
import { Snapshot } from './snapshot.ts';

/** How long the answer to a write waits until the store knows its end. Until then its mark hides the copies. */
const END_MS = 200;

/**
 * What is known of accounts, by this instance or by all that share a store: see `note.ts` for the rules. Versions never
 * repeat, so lost data voids all copies. Nothing here rejects where the store does not answer.
 */
export class Store extends Instance {
  /** The copy that this instance has, valid or not. */
  copyOf(account: AccountId, key: CacheKey): Entry | undefined {
    return this.copies.get(account, key)?.entry;
  }

  /** All that a request needs to begin, in one round trip. Leaves out what the store does not answer. */
  snapshot(request: SnapshotRequest): MaybePromise<Snapshot> {
    return new Snapshot(this, this.accounts.of(request.account), request).begin();
  }

  /** Counts a write, claims its key and marks what it invalidates, before it is sent. */
  async beginWrite(write: NewWrite): Promise<Begun> {
    const { key, keyMs, session, isPurchase, waitUntil } = write;
    const account = this.accounts.of(write.account);
    const use = await this.count(account, write);
    if (isOver(use, write)) return { use, isLimited: true };
    const { backend } = this;
    let isGivenUp = false;
    let isAsked = false;
    const decide: Decide<Refused> = (note, held, now) => {
      if (session && this.sessionIn(account, note, session).isOver) return { isRevoked: true };
      const result = begun(note, held, write, now);
      if (result === 'full' || 'record' in result) return result;
      if (this.coolsUntil(account.id) > this.clock.now()) return { isLimited: true };
      // What was told to the store before may be lost: nothing is sent that must not be sent twice.
      return (key !== undefined || isPurchase) && backend.reliableAt > now ? { refusal: this.#unreliable() } : result;
    };
    // A beginning that was given up before the store was asked never was.
    const isWanted = (isNext: boolean) => {
      isAsked ||= isNext && !isGivenUp;
      return !isGivenUp;
    };
    const beginning = this.changes.make(account, decide, { key, keyMs, isBeginning: true, isWanted });
    waitUntil(beginning.catch(() => undefined)); // others wait for it to be over
    const result = await this.inTime(beginning, WRITE_MS);
    if (result === undefined) {
      isGivenUp = true;
      // A beginning that comes to nothing leaves nothing to tell; if the store was asked and does not reply, nobody knows.
      const hasBegun = beginning.then(isChange, () => isAsked);
      waitUntil(hasBegun.then((has) => has && this.#tellEnd(account, write, 'not_sent', write.until)));
      return { use, refusal: unavailable() };
    }
    if (result === 'full') return { use, refusal: unavailable(60, FULL) };
    return isChange(result) ? { use } : { use, ...result };
  }

  /** What is known of the outcome of a key. Counts the request. */
  async outcomeOf(question: KeyQuestion): Promise<Begun> {
    const { key, session } = question;
    const { backend } = this;
    const account = this.accounts.of(question.account);
    const use = await this.count(account, question);
    if (isOver(use, question)) return { use, isLimited: true };
    const looked = await this.inTime(backend.look(account, [], key), WRITE_MS);
    if (!looked) return { use, refusal: unavailable() };
    if (session && this.sessionIn(account, looked.note, session).isOver) return { use, isRevoked: true };
    if (looked.held) return { use, record: outcomeOf(looked.held, backend.now()) };
    return backend.reliableAt > backend.now() ? { use, refusal: this.#unreliable() } : { use };
  }

  /** Removes the mark, unless the outcome is unknown: then it stays until it expires. */
  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    const account = this.accounts.of(write.account);
    // The time is counted anew where the process was stopped beyond the end of the request.
    const until = Math.max(write.until, this.clock.now() + write.until - write.endsAt);
    if (end === 'credential_refused') this.markRefused(account, until);
    await this.inTime(this.#tellEnd(account, write, end, until), END_MS);
  }

  /** A write that needed no store is over: what it touches is never cached. */
  async endUnannounced({ account: id, tags, waitUntil }: NewWrite, end: WriteEnd): Promise<void> {
    const account = this.accounts.of(id);
    if (end === 'credential_refused') await this.inTime(this.refuse(account, waitUntil), END_MS);
    else if (this.backend.isHere) await this.dropTags(account, tags, waitUntil);
  }

  usage(): Usage {
    return this.copies.usage();
  }

  #unreliable(): GatewayError {
    const seconds = Math.ceil((this.backend.reliableAt - this.backend.now()) / 1000);
    return unavailable(Math.max(1, seconds), REPLACED);
  }

  #tellEnd(account: Account, write: NewWrite, end: WriteEnd, until: number): Promise<boolean> {
    const recordUntil = write.now + write.keyMs;
    const ending = async () => {
      const now = this.clock.now();
      const decide: Decide<never> = (note, held, at) => ended(note, held, { write, end, leftMs: until - now }, at);
      await this.changes.make(account, decide, { key: write.key, keyMs: recordUntil - now });
      if (end === 'credential_refused') this.refused.delete(account.id);
    };
    return this.changes.tell(write.waitUntil, ending, until);
  }
}

/** Why a write may not begin. */
type Refused = Omit<Begun, 'use'> | 'full';

const isOver = (use: WindowUse | undefined, { window }: SnapshotRequest): boolean =>
  use !== undefined && window !== undefined && use.used > window.limit;

const REPLACED =
  'The shared store was restarted or replaced a moment ago; until it can be relied upon nothing is bought.';

const FULL = 'There is no room left for what a write has to leave behind until it is over.';

const unavailable = (retryAfter = 1, detail?: string) =>
  GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter, ...(detail !== undefined && { detail }) });
