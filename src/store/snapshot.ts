import { type Clock, whenDone, type MaybePromise } from '../core/runtime.ts';
import type { Account, Seen } from './account.ts';
import type { Copy } from './copies.ts';
import { type Instance, READ_MS } from './instance.ts';
import { LONGEST_READ_MS, NO_NOTE, versionOf } from './note.ts';
import {
  ageMsOf,
  type CacheKey,
  type Entry,
  type Fetched,
  type Found,
  freshFor,
  type Saved,
  type SessionState,
  type SnapshotRequest,
  type Tag,
  type Version,
  type WindowUse,
} from './port.ts';

const MAX_OWN_TAG = 64;

/** The tag of the copy under this key alone; no group begins so. It is cut off, since clients may send long keys. */
const ownTagOf = ({ key }: CacheKey): Tag => `=${key.slice(0, MAX_OWN_TAG)}`;

/** What one request sees of its account. */
export class Snapshot {
  /** How much of the rate limit is used. */
  use: WindowUse | undefined;
  /** The state of the session that was asked for. */
  session: SessionState | undefined;
  readonly #instance: Instance;
  readonly #account: Account;
  readonly #request: SnapshotRequest;
  /** Undefined where the store does not answer, cannot be relied on, or was not asked. */
  #seen: Seen | undefined;
  /** A store that has not answered is not waited for again. */
  #isAsked = false;
  #askedAt = 0;
  /** The result for what no other request may join. */
  #hidden: Found | undefined;

  constructor(instance: Instance, account: Account, request: SnapshotRequest) {
    this.#instance = instance;
    this.#account = account;
    this.#request = request;
  }

  /** Counts the request, and asks for the note where something may be cached or a session has to be known. */
  begin(): MaybePromise<this> {
    const { keys = [], session } = this.#request;
    const counting = this.#instance.count(this.#account, this.#request);
    const cached = keys.filter(({ lifeMs }) => lifeMs > 0);
    const isAsking = cached.length > 0 || session !== undefined || this.#instance.backend.isHere;
    const counted = (use: WindowUse | undefined) => {
      this.use = use;
      return this;
    };
    return whenDone(isAsking ? this.#look(cached) : undefined, () => whenDone(counting, counted));
  }

  /** Asks for the note, and for what has no fresh copy here: then again for copies that are of another version now. */
  #look(keys: readonly CacheKey[], isAgain = false, endsAt = this.#instance.clock.now() + READ_MS): MaybePromise<void> {
    const instance = this.#instance;
    const { backend, copies, clock } = instance;
    const account = this.#account;
    this.#isAsked = true;
    const wanted = backend.isHere
      ? NONE
      : keys.filter((key) => isAgain || !isFresh(copies.get(account.id, key), key, clock));
    return whenDone(instance.inTime(backend.look(account, wanted), endsAt - clock.now()), (seen) => {
      this.#learnSession(seen);
      if (!seen || backend.reliableAt > backend.now() || instance.isRefused(account, this.#request.waitUntil))
        return undefined;
      this.#seen = seen;
      this.#askedAt = backend.now();
      if (backend.isHere) return undefined;
      for (const [i, key] of wanted.entries()) this.#take(key, seen.copies?.[i]);
      if (isAgain) return undefined;
      const changed = keys.filter((key) => !wanted.includes(key) && !this.copy(key) && this.#versionOf(key));
      return changed.length > 0 ? this.#look(changed, true, endsAt) : undefined;
    });
  }

  #learnSession(seen: Seen | undefined): void {
    const { session } = this.#request;
    if (!session || (!seen && this.session)) return; // what the store has said once stays said
    const state = this.#instance.sessionIn(this.#account, seen?.note ?? NO_NOTE, session);
    this.session = seen ? state : { ...state, isLocal: true };
  }

  /** A copy that another instance has made, in the time of this process. */
  #take(key: CacheKey, copy: Copy | undefined): void {
    if (!copy || copy.version !== this.#versionOf(key)) return;
    const { copies, backend, clock } = this.#instance;
    const { id } = this.#account;
    const own = copies.get(id, key);
    if (own?.version === copy.version && own.askedAt >= copy.askedAt) return;
    const ageMs = backend.now() - copy.entry.storedAt;
    const entry = { ...copy.entry, storedAt: clock.now() - ageMs, storedWall: clock.wall() - ageMs };
    copies.set(id, key, { ...copy, entry });
  }

  #versionOf(key: CacheKey, seen = this.#seen): Version | undefined {
    const version = seen && versionOf(seen.note, [ownTagOf(key), ...key.tags], this.#instance.backend.now());
    return version === undefined ? undefined : `${seen?.token} ${version}`;
  }

  /** The valid copy, of any age, as far as it is known without asking. */
  copy(key: CacheKey): Entry | undefined {
    const note = this.#seen?.note;
    const copy = note && this.#instance.copies.get(this.#account.id, key);
    if (!copy) return undefined;
    // A missing note is the same one in every store.
    if (copy.confirmed === note && note !== NO_NOTE && note.marks.length === 0) return copy.entry;
    if (copy.version !== this.#versionOf(key)) return undefined;
    copy.confirmed = note;
    return copy.entry;
  }

  lookup(key: CacheKey): MaybePromise<Found> {
    // What is never kept asks nobody, so nobody may join it: a write may have been answered elsewhere meanwhile.
    if (this.#isAsked || key.lifeMs === 0) return this.#found(key);
    return whenDone(this.#look([key]), () => this.#found(key));
  }

  #found(key: CacheKey): Found {
    const isKnown = key.lifeMs > 0 || this.#instance.backend.isHere;
    const version = isKnown ? this.#versionOf(key) : undefined;
    if (version === undefined) return (this.#hidden ??= newHidden());
    return { entry: key.lifeMs > 0 ? this.copy(key) : undefined, version, askedAt: this.#askedAt };
  }

  /** Whether what was found is still valid, as far as this instance knows. */
  holds(key: CacheKey, found: Found): boolean {
    const { backend, accounts } = this.#instance;
    const account = accounts.of(this.#account.id); // the one of the request may have been evicted meanwhile
    if (found.isHidden || this.#instance.refused.has(account.id)) return false;
    if (backend.now() > found.askedAt + LONGEST_READ_MS) return false;
    const seen = backend.peek(account);
    return seen !== undefined && this.#versionOf(key, seen) === found.version; // none is known where the store is another one
  }

  /** Ends a fetch. The answer is kept only if nothing was invalidated since the lookup. Never rejects. */
  save(key: CacheKey, found: Found, { entry, drop }: Fetched): MaybePromise<Saved> {
    const instance = this.#instance;
    if (drop) {
      const { waitUntil } = this.#request;
      const account = instance.accounts.of(this.#account.id); // the one from the beginning may have been evicted
      if (drop === 'key') instance.copies.delete(account.id, key);
      const dropping =
        drop === 'key' ? instance.dropTags(account, [ownTagOf(key)], waitUntil) : instance.refuse(account, waitUntil);
      return whenDone(instance.inTime(dropping, READ_MS), () => ({ stored: false, holds: false }));
    }
    const holds = this.holds(key, found);
    if (!entry || !holds) return { stored: false, holds };
    const { version, askedAt } = found;
    const stored = instance.copies.set(this.#account.id, key, { entry, version, askedAt });
    if (stored) this.#share(key, { entry, version, askedAt });
    return { stored, holds };
  }

  /** Keeps a copy for other instances, in the time of the store. */
  #share(key: CacheKey, copy: Copy): void {
    const { backend, clock, copies } = this.#instance;
    const account = this.#account;
    if (!backend.keep) return;
    const storedAt = backend.now() - ageMsOf(copy.entry, clock);
    const keeping = backend.keep(account, key, { ...copy, entry: { ...copy.entry, storedAt } });
    const kept = keeping.catch(() => false).then((stands) => stands || copies.delete(account.id, key));
    this.#request.waitUntil(kept);
  }
}

/** The result of a lookup when no copy may be used or kept. Its version is like no other, so nobody else joins the call. */
const newHidden = (): Found => ({ entry: undefined, version: crypto.randomUUID(), askedAt: 0, isHidden: true });

const NONE: readonly CacheKey[] = [];

const isFresh = (copy: Copy | undefined, key: CacheKey, clock: Clock) =>
  copy !== undefined && ageMsOf(copy.entry, clock) < freshFor(copy.entry, key.freshMs);
