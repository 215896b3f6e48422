import { type Clock, within } from '../../core/runtime.ts';
import type { Copies } from '../copies.ts';
import type { MemoryAccounts } from '../memory/accounts.ts';
import {
  type SnapshotRequest,
  BUDGET,
  type CacheKey,
  type Entry,
  type Fetched,
  type Found,
  freshFor,
  hidden,
  type Saved,
  type SessionState,
  type Snapshot,
  type Window,
  type WindowUse,
} from '../store.ts';
import {
  type Engine,
  type KeyQuestion,
  type KeyReply,
  MAX_VALUE_BYTES,
  type Save,
  type SnapshotReply,
  useOf,
} from './engine.ts';
import { RequestLeases } from './leases.ts';
import type { Reports } from './reports.ts';
import type { Sealer } from './sealer.ts';
import type { SharedSessions } from './sessions.ts';

export interface SharedStoreOptions {
  readonly engine: Engine;
  readonly sealer: Sealer;
  /** Bounds the copies of answers that this instance keeps, keys and bodies together. */
  readonly maxBytes: number;
  readonly clock: Clock;
  /** How long another instance's fetch is waited for at most. */
  readonly waitMs: number;
  /** Whether calls of the upstream are counted. */
  readonly hasBudget: boolean;
}

export interface SharedParts extends SharedStoreOptions {
  /** Each is used only where the engine's reply has the same version. */
  readonly copies: Copies;
  readonly limits: MemoryAccounts;
  readonly reports: Reports;
  readonly sessions: SharedSessions;
  /** What a lookup finds while the engine does not answer. */
  away(): Found;
}

/** How long a request waits for all its store calls together, other than for leases. 200 are promised; timers are late. */
const READ_MS = 190;
const POLL_MS = 1_000;

/** What a request knows of one cache key. */
interface State {
  readonly key: CacheKey;
  readonly found: Found;
  /** Nonce of the lease to fetch it. */
  readonly lease: string | undefined;
}

type Asked = { readonly key: CacheKey; readonly question: KeyQuestion };

/** What a request, and the fetches that it has begun, see of a shared store. */
export class SharedSnapshot implements Snapshot {
  use: WindowUse | undefined;
  session: SessionState | undefined;
  readonly #parts: SharedParts;
  readonly #request: SnapshotRequest;
  /** Of its leases. */
  readonly #nonce = crypto.randomUUID();
  /** Found under a mark: equal reads share a call only within this request. */
  readonly #hidden = hidden(this.#nonce);
  readonly #states = new Map<string, State>();
  readonly #leases: RequestLeases;
  #together: { readonly keys: CacheKey[]; readonly asked: Promise<unknown> } | undefined;
  #leftMs = READ_MS;
  #isEnded = false;

  constructor(parts: SharedParts, request: SnapshotRequest) {
    const { account, waitUntil } = request;
    this.#parts = parts;
    this.#request = request;
    this.#leases = new RequestLeases({
      ...parts,
      waitUntil,
      ask: (keys) => this.#ask(keys, POLL_MS),
      leaseOn: ({ key }) => this.#states.get(key)?.lease,
      renew: async (key) => {
        const renewed = { key: await parts.sealer.nameOf(key.key), lease: this.#nonce };
        await parts.engine.change(account, { renewed });
      },
    });
  }

  /** Asks for the keys that the request has named, and counts it in its window. */
  async begin(): Promise<this> {
    const { limits, sessions, clock } = this.#parts;
    const { window, session, now, keys = [] } = this.#request;
    const reply = await this.#ask(keys, this.#leftMs, window);
    const state = reply ? reply.session : await this.#sessionAlone();
    if (session) this.session = sessions.learn(this.#request, session, state);
    this.use = reply?.use && useOf(reply.use, clock.now());
    // The count goes on from there if the engine does not answer next time.
    if (window && this.use) limits.learn(this.#request, window.name, this.use);
    else if (window) this.use = limits.take(this.#request, window, now);
    return this;
  }

  /** Where the question was refused, and not late: a store that takes nothing new may still say whether a session is over. */
  async #sessionAlone(): Promise<SessionState | undefined> {
    const { engine } = this.#parts;
    const { account, session } = this.#request;
    if (!session || !engine.session || this.#leftMs <= 0) return undefined;
    const state = await this.#inTime(engine.session(account, session.id));
    return state && { ...state, isLocal: true };
  }

  copy({ key }: CacheKey): Entry | undefined {
    return this.#states.get(key)?.found.entry;
  }

  async lookup(key: CacheKey): Promise<Found> {
    if (!this.#states.has(key.key)) await this.#askTogether(key);
    return this.#states.get(key.key)?.found ?? this.#parts.away();
  }

  async lease(key: CacheKey, found: Found, signal: AbortSignal): Promise<Found> {
    const before = this.#states.get(key.key);
    if (!before || found.isHidden) return found;
    this.#leases.reserve(key); // the request may be over before the fetch begins
    const { lease } = before;
    if (lease !== undefined && lease !== this.#nonce) await this.#leases.wait(key, lease, signal);
    const state = this.#states.get(key.key);
    if (state?.lease === this.#nonce) this.#leases.use(key);
    return state?.found ?? this.#parts.away();
  }

  async save(key: CacheKey, found: Found, { entry, drop }: Fetched): Promise<Saved> {
    this.#leases.end(key);
    const lease = this.#states.get(key.key)?.lease === this.#nonce ? this.#nonce : undefined;
    if (!drop && found.isHidden) return { stored: false, holds: false };
    if (!entry && !drop && !lease && !found.entry) return { stored: false, holds: true };
    const { engine, copies, reports } = this.#parts;
    const { account } = this.#request;
    const save = await this.#saveOf(key, found, { entry, drop }, lease);
    if (drop === 'everything') {
      await this.#inTime(reports.refuse(account, () => engine.save(account, save)));
      return { stored: false, holds: false };
    }
    const saved = await this.#inTime(engine.save(account, save));
    const stored = entry !== undefined && (saved === 'kept' || saved === 'full');
    if (stored) copies.set(key, found, entry);
    return { stored, holds: saved !== 'void' };
  }

  /** Returns the leases that were not used. */
  end(): void {
    this.#isEnded = true;
    this.#returnUnused([...this.#states.values()]);
  }

  /** One round trip for all keys that are looked up at the same moment. */
  #askTogether(key: CacheKey): Promise<unknown> {
    const keys: CacheKey[] = this.#together?.keys ?? [];
    keys.push(key);
    this.#together ??= {
      keys,
      asked: Promise.resolve().then(() => {
        this.#together = undefined;
        return this.#ask(keys, this.#leftMs);
      }),
    };
    return this.#together.asked;
  }

  /** Takes over the reply. Where it does not come in so many milliseconds, its leases are returned. */
  async #ask(keys: readonly CacheKey[], ms: number, window?: Window): Promise<SnapshotReply | undefined> {
    const { engine, clock, hasBudget } = this.#parts;
    if (ms <= 0) return this.#forget(keys);
    const asked = await Promise.all(keys.map(async (key) => ({ key, question: await this.#questionOf(key) })));
    const questions = asked.map(({ question }) => question);
    const budget = hasBudget ? BUDGET : undefined;
    const { session } = this.#request;
    const ofSession = session && { session: session.id, sessionEpoch: session.epoch };
    const begunAt = clock.now();
    const replying = engine.snapshot(this.#request.account, { window, budget, ...ofSession, keys: questions });
    try {
      const reply = await within(clock, ms, replying);
      this.#learn(reply);
      for (const state of await this.#statesOf(asked, reply)) this.#states.set(state.key.key, state);
      if (this.#isEnded) this.end();
      return reply;
    } catch {
      const late = replying.then((reply) => this.#statesOf(asked, reply));
      this.#request.waitUntil(late.then((states) => this.#returnUnused(states)).catch(() => undefined));
      return this.#forget(keys);
    } finally {
      if (ms !== POLL_MS) this.#leftMs -= clock.now() - begunAt;
    }
  }

  /** Takes over cooldown and budget. */
  #learn({ cooldownMs, budget }: SnapshotReply): void {
    const { limits, clock } = this.#parts;
    const now = clock.now();
    if (cooldownMs > 0) limits.coolDown(this.#request, now + cooldownMs);
    if (budget && budget.used > 0) limits.learn(this.#request, BUDGET.name, useOf(budget, now));
  }

  /** A question without an answer leaves nothing known. */
  #forget(keys: readonly CacheKey[]): undefined {
    for (const { key } of keys) this.#states.delete(key);
  }

  async #questionOf(key: CacheKey): Promise<KeyQuestion> {
    const { sealer, copies, clock } = this.#parts;
    const copy = copies.get(key);
    const isFresh = copy !== undefined && copy.entry.storedAt + freshFor(copy.entry, key.freshMs) > clock.now();
    return {
      ...(await sealer.namedKey(key)),
      have: copy && { version: copy.version, askedAt: copy.askedAt, isFresh },
      lease: this.#request.fetches && key.lifeMs > 0 ? this.#nonce : undefined,
      waitedFor: this.#leases.waitedFor(key),
    };
  }

  #statesOf(asked: readonly Asked[], { keys, now }: SnapshotReply): Promise<readonly State[]> {
    return Promise.all(asked.map((one, i) => this.#stateOf(one, keys[i], now)));
  }

  async #stateOf({ key, question }: Asked, reply: KeyReply | undefined, now: number): Promise<State> {
    if (!reply || this.#parts.reports.isRefused(this.#request.account))
      return { key, found: this.#hidden, lease: reply?.lease === this.#nonce ? this.#nonce : undefined };
    const { version, copy, lease } = reply;
    const entry = await this.#entryOf(key, reply, now);
    const isNewer = entry !== undefined && (copy?.askedAt ?? 0) > (question.have?.askedAt ?? 0);
    const isMadeElsewhere = question.waitedFor !== undefined && lease === undefined && isNewer;
    const isLeasedElsewhere = lease !== undefined && lease !== this.#nonce;
    return { key, found: { entry, version, askedAt: now, isLeasedElsewhere, isMadeElsewhere }, lease };
  }

  async #entryOf(key: CacheKey, { version, copy }: KeyReply, now: number): Promise<Entry | undefined> {
    const { copies, sealer, clock } = this.#parts;
    let own = copies.get(key);
    if (own && own.askedAt > now) {
      copies.delete(key); // the engine's clock was set back: none that is newer would take its place
      own = undefined;
    }
    if (!copy?.value) return own?.version === version ? own.entry : undefined;
    const storedAt = clock.now() - copy.ageMs;
    const entry = await sealer.openCopy(key, copy.value, storedAt);
    if (entry) copies.set(key, { version, askedAt: copy.askedAt }, entry);
    return entry;
  }

  async #saveOf(key: CacheKey, found: Found, { entry, drop }: Fetched, lease: string | undefined): Promise<Save> {
    const { sealer } = this.#parts;
    const value = entry && (await sealer.sealCopy(key, entry));
    const isKept = value !== undefined && value.length <= MAX_VALUE_BYTES;
    const freshMs = freshFor(entry, key.freshMs);
    const copy = isKept ? { value, freshMs, lifeMs: key.lifeMs } : undefined;
    const { version, askedAt } = found;
    return { ...(await sealer.namedKey(key)), version, askedAt, lease, copy, drop };
  }

  /** Waits for a reply while the request has time left for the store; after that it goes on in the background. */
  #inTime<T>(replying: Promise<T>): Promise<T | undefined> {
    const { clock } = this.#parts;
    const begunAt = clock.now();
    this.#request.waitUntil(replying.catch(() => undefined));
    if (this.#leftMs <= 0) return Promise.resolve(undefined);
    return within(clock, this.#leftMs, replying)
      .catch(() => undefined)
      .finally(() => (this.#leftMs -= clock.now() - begunAt));
  }

  /** Ends those leases that no fetch has used. */
  #returnUnused(states: readonly State[]): void {
    for (const { key, found, lease } of states) {
      if (lease !== this.#nonce || this.#leases.isUsed(key)) continue;
      this.#leases.end(key);
      const ended = this.#saveOf(key, found, {}, lease).then((save) =>
        this.#parts.engine.save(this.#request.account, save),
      );
      this.#request.waitUntil(ended.catch(() => undefined));
    }
  }
}
