import type { Soon } from '../../core/runtime.ts';
import {
  type CacheKey,
  type Entry,
  type Fetched,
  type Found,
  isSessionOver,
  type Saved,
  type SessionId,
  type SessionState,
  type Snapshot,
  type SnapshotRequest,
  type Window,
  type WindowUse,
} from '../store.ts';
import { untilKnown } from './changes.ts';
import { useOf } from './engine.ts';
import { Lookups } from './lookups.ts';
import type { SharedParts } from './parts.ts';
import type { Known } from './views.ts';

/** What a request, and the fetches that it has begun, see of a shared store. */
export class SharedSnapshot implements Snapshot {
  use: WindowUse | undefined;
  session: SessionState | undefined;
  readonly #parts: SharedParts;
  readonly #request: SnapshotRequest;
  /** What answers without a question. */
  #known: Known | undefined;
  #made: Lookups | undefined;

  constructor(parts: SharedParts, request: SnapshotRequest) {
    this.#parts = parts;
    this.#request = request;
  }

  /** Counts the request in its window, and asks for the keys that it has named; at once where both are known. */
  begin(): Soon<this> {
    const { limits, views } = this.#parts;
    const { window } = this.#request;
    this.use = window && limits.takeAdvance(this.#request, window);
    const uncounted = this.use ? undefined : window;
    if (!views || !this.#isKnown()) return this.#asked(uncounted);
    if (uncounted) return this.#counted(uncounted);
    views.hits++;
    return this;
  }

  /** Whether there is nothing to ask, its count aside. */
  #isKnown(): boolean {
    const { fetches, keys = [] } = this.#request;
    this.#known = keys.length > 0 && fetches ? this.#parts.views?.known(this.#request) : undefined;
    this.session = this.#known?.session;
    return this.#known !== undefined;
  }

  async #counted(window: Window): Promise<this> {
    const { limits, counting } = this.#parts;
    const { now } = this.#request;
    this.use =
      (await this.#lookups.inTime(counting.count(this.#request, window))) ?? limits.take(this.#request, window, now);
    return this.#isKnown() ? this : this.#asked(); // something may have changed meanwhile
  }

  async #asked(window?: Window): Promise<this> {
    const { limits, clock } = this.#parts;
    const { session, now } = this.#request;
    const reply = await this.#lookups.askFirst(window);
    if (session) await this.#learnSession(session, reply ? reply.session : await this.#lookups.askSession());
    if (!window) return this;
    this.use = reply?.use && useOf(reply.use, clock.now());
    // The count goes on from there if the engine does not answer next time.
    if (this.use) limits.learn(this.#request, window.name, this.use);
    else this.use = limits.take(this.#request, window, now);
    return this;
  }

  /** What is told of a session's end is told when no instance lets it in any more. */
  async #learnSession(session: SessionId, reply: SessionState | undefined): Promise<void> {
    const { sessions, views, clock } = this.#parts;
    const state = (this.session = sessions.learn(this.#request, session, reply));
    const { view } = this.#lookups;
    if (isSessionOver(session, state)) {
      if (views) await untilKnown(clock, state.sinceMs ?? 0);
    } else if (view && !state.isLocal) views?.learnSession(view, session.id, state);
  }

  copy(key: CacheKey): Entry | undefined {
    const at = this.#known ? (this.#request.keys ?? []).findIndex((named) => named.key === key.key) : -1;
    return this.#known?.entries[at] ?? this.#made?.copy(key);
  }

  lookup(key: CacheKey): Promise<Found> {
    return this.#lookups.lookup(key);
  }

  lease(key: CacheKey, found: Found, signal: AbortSignal): Promise<Found> {
    return this.#lookups.lease(key, found, signal);
  }

  save(key: CacheKey, found: Found, fetched: Fetched): Promise<Saved> {
    return this.#lookups.save(key, found, fetched);
  }

  end(): void {
    this.#made?.end();
  }

  /** Made with the first question. */
  get #lookups(): Lookups {
    return (this.#made ??= new Lookups(this.#parts, this.#request));
  }
}
