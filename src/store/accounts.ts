import { GatewayError } from '../core/errors.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { type Decide, isChange } from './changes.ts';
import { Instance, WRITE_MS } from './instance.ts';
import { type Account } from './account.ts';
import { begun, ended, outcomeOf } from './note.ts';
import type {
  AccountId,
  Begun,
  CacheKey,
  Entry,
  KeyQuestion,
  NewWrite,
  Snapshot,
  SnapshotRequest,
  Store,
  Usage,
  WindowUse,
  WriteEnd,
} from './port.ts';
import { NoteSnapshot } from './snapshot.ts';

/** How long the answer to a write waits until the store knows its end. Until then its mark hides the copies. */
const END_MS = 200;

/** The accounts that this instance knows, and what it shares with others by their notes: see `note.ts` for the rules. */
export class Accounts extends Instance implements Store {
  copyOf(account: AccountId, key: CacheKey): Entry | undefined {
    return this.copies.get(account, key)?.entry;
  }

  snapshot(request: SnapshotRequest): MaybePromise<Snapshot> {
    return new NoteSnapshot(this, this.accounts.of(request.account), request).begin();
  }

  async beginWrite(write: NewWrite): Promise<Begun> {
    const { key, session, isPurchase } = write;
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
      if (account.coolsUntil > this.clock.now()) return { isLimited: true };
      // What was told to the store before may be lost: nothing is sent that must not be sent twice.
      return (key !== undefined || isPurchase) && backend.reliableAt > now ? { refusal: this.#unreliable() } : result;
    };
    // One that was given up before the store was asked for it never was.
    const isWanted = (isNext: boolean) => {
      isAsked ||= isNext && !isGivenUp;
      return !isGivenUp;
    };
    const beginning = this.changes.make(account, decide, { key, keyMs: write.keyMs, isBeginning: true, isWanted });
    write.waitUntil(beginning.catch(() => undefined)); // others wait for it to be over
    const result = await this.inTime(beginning, WRITE_MS);
    if (result === undefined) {
      isGivenUp = true;
      // Where it comes to nothing there is nothing to tell; where the store was asked and does not reply, nobody knows.
      const hasBegun = beginning.then(isChange, () => isAsked);
      write.waitUntil(hasBegun.then((has) => has && this.#tellEnd(account, write, 'not_sent', write.until)));
      return { use, refusal: unavailable() };
    }
    if (result === 'full') return { use, refusal: unavailable(60, FULL) };
    return isChange(result) ? { use } : { use, ...result };
  }

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

  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    const account = this.accounts.of(write.account);
    // Counted anew where the process was stopped beyond the end of the request.
    const until = Math.max(write.until, this.clock.now() + write.until - write.endsAt);
    if (end === 'credential_refused') this.markRefused(account, until);
    await this.inTime(this.#tellEnd(account, write, end, until), END_MS);
  }

  async endUnannounced(write: NewWrite, end: WriteEnd): Promise<void> {
    const account = this.accounts.of(write.account);
    if (end === 'credential_refused') await this.inTime(this.refuse(account, write.waitUntil), END_MS);
    else if (this.backend.isHere) await this.dropTags(account, write.tags, write.waitUntil);
  }

  usage(): Usage {
    return this.copies.usage();
  }

  #unreliable(): GatewayError {
    const seconds = Math.ceil((this.backend.reliableAt - this.backend.now()) / 1000);
    return unavailable(Math.max(1, seconds), REPLACED);
  }

  #tellEnd(account: Account, write: NewWrite, end: WriteEnd, until: number): Promise<boolean> {
    const { key, waitUntil } = write;
    const recordUntil = write.now + write.keyMs;
    const ending = async () => {
      const now = this.clock.now();
      const decide: Decide<never> = (note, held, at) => ended(note, held, { write, end, leftMs: until - now }, at);
      await this.changes.make(account, decide, { key, keyMs: recordUntil - now });
      if (end === 'credential_refused') account.refusedUntil = undefined;
    };
    return this.changes.tell(waitUntil, ending, until);
  }
}

/** Why a write may not begin. */
type Refused = Pick<Begun, 'record' | 'isLimited' | 'isRevoked' | 'refusal'> | 'full';

const isOver = (use: WindowUse | undefined, { window }: Pick<SnapshotRequest, 'window'>): boolean =>
  use !== undefined && window !== undefined && use.used > window.limit;

const REPLACED =
  'The shared store was restarted or replaced a moment ago; until it can be relied upon nothing is bought.';

const FULL = 'There is no room left for what a write has to leave behind until it is over.';

const unavailable = (retryAfter = 1, detail?: string) =>
  GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter, ...(detail !== undefined && { detail }) });
