import { onAbort, pause, within } from '../../core/runtime.ts';
import {
  type SnapshotRequest,
  type CacheKey,
  type Entry,
  type Fetched,
  type Found,
  hidden,
  type Saved,
  type SessionState,
  type Window,
} from '../store.ts';
import { type KeyQuestion, type KeyReply, LEASE_MS, type SnapshotReply } from './engine.ts';
import { entryOf, questionOf, saveOf } from './keys.ts';
import type { SharedParts } from './parts.ts';
import type { View } from './views.ts';

/** How long a request waits for all its store calls together, other than for leases. 200 are promised; timers are late. */
const READ_MS = 190;
const POLL_MS = 1_000;
const FIRST_PAUSE_MS = 25;
const MAX_PAUSE_MS = 400;
const RENEW_MS = LEASE_MS / 3;

const nothing = () => undefined;

/** What a request knows of one cache key, and of the lease to fetch it. */
interface State {
  readonly key: CacheKey;
  /** By the engine's last reply; undefined where there was none. */
  found?: Found | undefined;
  /** Nonce of the lease: the request's own, or another's. */
  lease?: string | undefined;
  /** The view under which its version is known. */
  view?: View | undefined;
  /** A fetch uses the request's lease, did so, or is about to. */
  isUsed?: boolean;
  stopRenewing?: () => void;
  /** Another's lease, and what ends waiting for it. */
  waitedFor?: { readonly lease: string; readonly end: () => void } | undefined;
}

/** `isPoll`: for another's lease, which does not count as time that the request spends on the store. */
interface Asking {
  readonly window?: Window | undefined;
  readonly isPoll?: boolean;
}

/** What a request asks of the engine, and what it was told of its keys. */
export class Lookups {
  /** Under which the keys of the last reply are known. */
  view: View | undefined;
  readonly #parts: SharedParts;
  readonly #request: SnapshotRequest;
  /** Of its leases. */
  readonly #nonce = crypto.randomUUID();
  /** Found under a mark: equal reads share a call only within this request. */
  readonly #hidden = hidden(this.#nonce);
  readonly #states = new Map<string, State>();
  #together: { readonly states: State[]; readonly asked: Promise<unknown> } | undefined;
  #leftMs = READ_MS;
  #isPolling = false;
  #isEnded = false;

  constructor(parts: SharedParts, request: SnapshotRequest) {
    this.#parts = parts;
    this.#request = request;
  }

  /** The keys that the request has named, and its count in its window. */
  askFirst(window: Window | undefined): Promise<SnapshotReply | undefined> {
    const { keys = [] } = this.#request;
    return this.#ask(
      keys.map((key) => this.#stateOf(key)),
      { window },
    );
  }

  /** Where the question was refused, and not late: a store that takes nothing new may still say whether a session is over. */
  async askSession(): Promise<SessionState | undefined> {
    const { engine } = this.#parts;
    const { account, session } = this.#request;
    if (!session || !engine.session || this.#leftMs <= 0) return undefined;
    const state = await this.inTime(engine.session(account, session.id));
    return state && { ...state, isLocal: true };
  }

  copy({ key }: CacheKey): Entry | undefined {
    return this.#states.get(key)?.found?.entry;
  }

  async lookup(key: CacheKey): Promise<Found> {
    if (!this.#states.get(key.key)?.found) await this.#askTogether(key);
    return this.#states.get(key.key)?.found ?? this.#parts.away();
  }

  async lease({ key }: CacheKey, found: Found, signal: AbortSignal): Promise<Found> {
    const state = this.#states.get(key);
    if (!state?.found || found.isHidden) return found;
    state.isUsed = true; // the request may be over before the fetch begins
    const { lease } = state;
    if (lease !== undefined && lease !== this.#nonce) await this.#wait(state, lease, signal);
    if (state.lease === this.#nonce) this.#renew(state);
    return state.found ?? this.#parts.away();
  }

  async save(key: CacheKey, found: Found, { entry, drop }: Fetched): Promise<Saved> {
    const state = this.#states.get(key.key);
    state?.stopRenewing?.();
    if (state) state.isUsed = true;
    const lease = state?.lease === this.#nonce ? this.#nonce : undefined;
    if (!drop && found.isHidden) return { stored: false, holds: false };
    if (!entry && !drop && !lease && !found.entry) return { stored: false, holds: true };
    const { engine, copies, reports, sealer, views, clock } = this.#parts;
    const { account } = this.#request;
    if (drop) views?.drop(account);
    const save = { ...(await saveOf(sealer, key, found, entry)), lease, drop };
    if (drop === 'everything') {
      // Their versions are renewed, so nobody waits for these leases.
      for (const one of this.#states.values()) one.isUsed = true;
      await this.inTime(reports.refuse(account, () => engine.save(account, save)));
      return { stored: false, holds: false };
    }
    const saved = await this.inTime(engine.save(account, save));
    const stored = entry !== undefined && (saved === 'kept' || saved === 'full');
    if (stored) copies.set(key, found, entry);
    if (saved === 'kept') views?.confirm(account, state?.view, copies.get(key), clock.now());
    return { stored, holds: saved !== 'void' };
  }

  /** Gives back the leases that no fetch has used. */
  end(): void {
    this.#isEnded = true;
    for (const state of this.#states.values()) this.#giveBack(state, state.lease);
  }

  /** One round trip for all keys that are looked up at the same moment. */
  #askTogether(key: CacheKey): Promise<unknown> {
    const states: State[] = this.#together?.states ?? [];
    states.push(this.#stateOf(key));
    this.#together ??= {
      states,
      asked: Promise.resolve().then(() => {
        this.#together = undefined;
        return this.#ask(states);
      }),
    };
    return this.#together.asked;
  }

  /** Takes over the reply. Where it does not come in time, nothing is known of the keys, and its leases are given back. */
  async #ask(states: readonly State[], { window, isPoll = false }: Asking = {}): Promise<SnapshotReply | undefined> {
    const { engine } = this.#parts;
    const { account, session } = this.#request;
    if (isPoll || this.#leftMs > 0) {
      const ofSession = session && { session: session.id, sessionEpoch: session.epoch };
      const questions = await Promise.all(states.map((state) => this.#questionOf(state)));
      const replying = engine.snapshot(account, { window, ...ofSession, keys: questions });
      const reply = await this.inTime(replying, isPoll);
      if (reply) return this.#learn(states, questions, reply);
      const late = replying.then(({ keys }) => states.forEach((state, i) => this.#giveBack(state, keys[i]?.lease)));
      this.#request.waitUntil(late.catch(nothing));
    }
    for (const state of states) state.found = state.lease = undefined;
    return undefined;
  }

  #stateOf(key: CacheKey): State {
    const state = this.#states.get(key.key) ?? { key };
    this.#states.set(key.key, state);
    return state;
  }

  async #questionOf({ key, waitedFor }: State): Promise<KeyQuestion> {
    const lease = this.#request.fetches && key.lifeMs > 0 ? this.#nonce : undefined;
    return { ...(await questionOf(this.#parts, key)), lease, waitedFor: waitedFor?.lease };
  }

  async #learn(states: readonly State[], questions: readonly KeyQuestion[], reply: SnapshotReply) {
    const { limits, clock, copies, views } = this.#parts;
    const { cooldownMs, numbered } = reply;
    const now = clock.now();
    if (cooldownMs > 0) limits.coolDown(this.#request, now + cooldownMs);
    const found = await Promise.all(
      states.map(({ key }, i) => this.#foundOf(key, questions[i], reply.keys[i], reply.now)),
    );
    const view = (this.view = views?.learn(this.#request.account, numbered, clock.now()));
    for (const [i, state] of states.entries()) {
      const copy = view && found[i]?.entry && copies.get(state.key);
      if (copy && copy.version === reply.keys[i]?.version) copy.view = view;
      state.found = found[i];
      state.lease = reply.keys[i]?.lease;
      state.view = view;
    }
    if (this.#isEnded) this.end();
    return reply;
  }

  async #foundOf(
    key: CacheKey,
    asked: KeyQuestion | undefined,
    reply: KeyReply | undefined,
    now: number,
  ): Promise<Found> {
    if (!reply || this.#parts.reports.isRefused(this.#request.account)) return this.#hidden;
    const { version, copy, lease } = reply;
    const entry = await entryOf(this.#parts, key, reply, now);
    const isNewer = entry !== undefined && (copy?.askedAt ?? 0) > (asked?.have?.askedAt ?? 0);
    const isMadeElsewhere = asked?.waitedFor !== undefined && lease === undefined && isNewer;
    const isLeasedElsewhere = lease !== undefined && lease !== this.#nonce;
    return { entry, version, askedAt: now, isLeasedElsewhere, isMadeElsewhere };
  }

  /** A reply, if it comes while the request has time left for the store; else that goes on in the background. */
  async inTime<T>(replying: Promise<T>, isPoll = false): Promise<T | undefined> {
    const { clock, waits } = this.#parts;
    const begunAt = clock.now();
    this.#request.waitUntil(replying.catch(nothing));
    if (!isPoll && this.#leftMs <= 0) return undefined;
    const reply = await within(clock, isPoll ? POLL_MS : this.#leftMs, replying).then((value) => ({ value }), nothing);
    if (isPoll) return reply?.value;
    this.#leftMs -= clock.now() - begunAt;
    if (reply) waits.inTime();
    else waits.giveUp(clock.now());
    return reply?.value;
  }

  /** Resolves when another's lease is over, or after `waitMs`. Rejects with the signal's reason. */
  async #wait(state: State, lease: string, signal: AbortSignal): Promise<void> {
    const over = Promise.withResolvers<void>();
    state.waitedFor = { lease, end: over.resolve };
    const stay = onAbort(signal, over.reject);
    if (!this.#isPolling) this.#request.waitUntil(this.#poll());
    try {
      await over.promise;
    } finally {
      stay();
      state.waitedFor = undefined;
    }
  }

  /** Asks for all that is waited for in one question, with growing pauses. */
  async #poll(): Promise<void> {
    const { clock, waitMs } = this.#parts;
    const until = clock.now() + waitMs;
    this.#isPolling = true;
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
      await pause(clock, ms);
      const waiting = [...this.#states.values()].filter(({ waitedFor }) => waitedFor);
      if (waiting.length === 0) break;
      await this.#ask(waiting, { isPoll: true });
      for (const { lease, waitedFor } of waiting)
        if (lease !== waitedFor?.lease || clock.now() >= until) waitedFor?.end();
    }
    this.#isPolling = false;
  }

  /** Keeps the request's lease until its fetch ends. */
  #renew(state: State): void {
    const { engine, sealer, clock } = this.#parts;
    const { account, waitUntil } = this.#request;
    const renewed = async () =>
      engine.change(account, { renewed: { key: await sealer.nameOf(state.key.key), lease: this.#nonce } });
    state.stopRenewing = clock.after(RENEW_MS, () => {
      this.#renew(state);
      waitUntil(renewed().catch(nothing));
    });
  }

  /** Ends the lease that came with a reply, if it is the request's and no fetch uses it. */
  #giveBack(state: State, lease: string | undefined): void {
    if (lease !== this.#nonce || state.isUsed) return;
    state.isUsed = true;
    const { engine, sealer } = this.#parts;
    const { account, waitUntil } = this.#request;
    const ended = sealer
      .namedKey(state.key)
      .then((named) => engine.save(account, { ...named, version: '', askedAt: 0, lease }));
    waitUntil(ended.catch(nothing));
  }
}
