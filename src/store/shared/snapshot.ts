import type { Cancellation } from '../../core/cancellation.ts';
import type { Clock } from '../../core/runtime.ts';
import { within } from '../../core/within.ts';
import {
  type Arrival,
  BUDGET,
  type CacheKey,
  type Entry,
  type Fetched,
  type Found,
  freshFor,
  hidden,
  type Holder,
  type Saved,
  type Snapshot,
  type WindowUse,
} from '../store.ts';
import {
  type Engine,
  type KeyQuestion,
  type KeyReply,
  MAX_VALUE_BYTES,
  type Question,
  type Save,
  type Snapshot as Reply,
  type Window,
} from './engine.ts';
import { Leases } from './leases.ts';
import { namedKey } from './names.ts';
import type { NearCache } from './near-cache.ts';
import { openCopy, sealCopy } from './sealed-copy.ts';
import type { Sealer } from './sealer.ts';

export interface SnapshotTools {
  readonly engine: Engine;
  readonly sealer: Sealer;
  readonly near: NearCache;
  readonly clock: Clock;
  /** How long another instance's fetch is waited for at most. */
  readonly waitMs: number;
  readonly hasBudget: boolean;
  /** What is found while the engine does not answer. */
  away(): Found;
  /** What the engine says of limits. */
  learn(holder: Holder, reply: Reply): void;
  /** Whether the engine has yet to hear that nothing of the account is true any more. */
  isDropping(account: string): boolean;
  /** Tells it so, again and again; comes out when it has heard. */
  dropEverything(arrival: Arrival, save: Save): Promise<void>;
}

/**
 * What all of a request's store calls add to it together; waiting for another's fetch aside. 200 are allowed: timers
 * are late.
 */
const READ_MS = 190;
const POLL_MS = 1_000;

/** What a request knows of one cache key. */
interface State {
  readonly key: CacheKey;
  readonly found: Found;
  /** Who has the lease to fetch it. */
  readonly holder: string | undefined;
}

interface Asking {
  readonly window?: Window | undefined;
  /** How long the reply may take. */
  readonly ms: number;
}

const NOT_STORED: Saved = { stored: false, holds: false };

/** What a request sees of a shared store. Belongs to the request, and to the fetches that it has begun. */
export class SharedSnapshot implements Snapshot {
  use: WindowUse | undefined;
  readonly #of: SnapshotTools;
  readonly #arrival: Arrival;
  /** Of all leases that it takes. */
  readonly #nonce = crypto.randomUUID();
  /** Under a mark equal reads of one request share a call, and no others. */
  readonly #hidden = hidden(this.#nonce);
  readonly #states = new Map<string, State>();
  readonly #leases: Leases;
  #together: { readonly keys: CacheKey[]; readonly asked: Promise<unknown> } | undefined;
  #leftMs = READ_MS;
  #isEnded = false;

  constructor(tools: SnapshotTools, arrival: Arrival) {
    const { principal, background } = arrival;
    this.#of = tools;
    this.#arrival = arrival;
    this.#leases = new Leases({
      ...tools,
      background,
      ask: (keys) => this.#ask(keys, { ms: POLL_MS }),
      holderOf: ({ key }) => this.#states.get(key)?.holder,
      renew: async (key) => {
        const renewed = { key: await tools.sealer.nameOf(key.key), lease: this.#nonce };
        await tools.engine.change(principal, { renewed });
      },
    });
  }

  /** Asks for all that the request has named, and counts it. */
  async begin(keys: readonly CacheKey[], window: Window | undefined): Promise<void> {
    const reply = await this.#ask(keys, { window, ms: this.#leftMs });
    if (reply?.use) this.use = { used: reply.use.used, endsAt: this.#of.clock.now() + reply.use.leftMs };
  }

  async lookup(key: CacheKey): Promise<Found> {
    if (!this.#states.has(key.key)) await this.#askTogether(key);
    return this.#states.get(key.key)?.found ?? this.#of.away();
  }

  async lease(key: CacheKey, found: Found, cancellation: Cancellation): Promise<Found> {
    const known = this.#states.get(key.key);
    if (!known || found.isHidden) return found;
    this.#leases.reserve(key); // the request may be over before the fetch begins
    const { holder } = known;
    if (holder !== undefined && holder !== this.#nonce) await this.#leases.wait(key, holder, cancellation);
    const state = this.#states.get(key.key);
    if (state?.holder === this.#nonce) this.#leases.use(key);
    return state?.found ?? this.#of.away();
  }

  async save(key: CacheKey, found: Found, { entry, drop }: Fetched): Promise<Saved> {
    this.#leases.over(key);
    const lease = this.#states.get(key.key)?.holder === this.#nonce ? this.#nonce : undefined;
    if (!drop && found.isHidden) return NOT_STORED;
    if (!entry && !drop && !lease && !found.entry) return { stored: false, holds: true }; // nothing to say or to hear
    const save = await this.#saveOf(key, found, { entry, drop }, lease);
    if (drop === 'everything') {
      const dropping = this.#of.dropEverything(this.#arrival, save);
      await this.#inTime(dropping);
      return NOT_STORED;
    }
    const saved = await this.#inTime(this.#of.engine.save(this.#arrival.principal, save));
    const stored = entry !== undefined && (saved === 'kept' || saved === 'full');
    if (stored) this.#of.near.set(key, { entry, version: found.version, askedAt: found.askedAt });
    return { stored, holds: saved !== 'void' };
  }

  /** Gives back the leases that were not used after all. */
  end(): void {
    this.#isEnded = true;
    this.#giveBack([...this.#states.values()]);
  }

  /** One round trip for all that are looked up at the same moment. */
  #askTogether(key: CacheKey): Promise<unknown> {
    const keys: CacheKey[] = this.#together?.keys ?? [];
    keys.push(key);
    this.#together ??= {
      keys,
      asked: Promise.resolve().then(() => {
        this.#together = undefined;
        return this.#ask(keys, { ms: this.#leftMs });
      }),
    };
    return this.#together.asked;
  }

  /** Notes what the engine says. A reply that comes too late gives its leases back. */
  async #ask(keys: readonly CacheKey[], { window, ms }: Asking): Promise<Reply | undefined> {
    const { engine, clock, hasBudget } = this.#of;
    if (ms <= 0) return this.#forget(keys);
    const questions = await Promise.all(keys.map((key) => this.#questionOf(key)));
    const question: Question = { window, budget: hasBudget ? BUDGET : undefined, keys: questions };
    const begunAt = clock.now();
    const replying = engine.snapshot(this.#arrival.principal, question);
    try {
      const reply = await within(clock, ms, replying);
      this.#of.learn(this.#arrival, reply);
      const states = await Promise.all(
        keys.map((key, i) => this.#stateOf(key, questions[i], reply.keys[i], reply.now)),
      );
      for (const state of states) this.#states.set(state.key.key, state);
      if (this.#isEnded) this.end();
      return reply;
    } catch {
      const late = replying.then((reply) =>
        Promise.all(keys.map((key, i) => this.#stateOf(key, questions[i], reply.keys[i], reply.now))),
      );
      this.#arrival.background(late.then((states) => this.#giveBack(states)).catch(() => undefined));
      return this.#forget(keys);
    } finally {
      if (ms !== POLL_MS) this.#leftMs -= clock.now() - begunAt;
    }
  }

  /** Of what was known before a question that had no answer nothing counts. */
  #forget(keys: readonly CacheKey[]): undefined {
    for (const { key } of keys) this.#states.delete(key);
  }

  async #questionOf(key: CacheKey): Promise<KeyQuestion> {
    const { sealer, near } = this.#of;
    const copy = near.get(key);
    return {
      ...(await namedKey(sealer, key)),
      have: copy && { version: copy.version, askedAt: copy.askedAt, isFresh: this.#isFresh(key) },
      lease: this.#arrival.fetches && key.lifeMs > 0 ? this.#nonce : undefined,
      waitedFor: this.#leases.waitedFor(key),
    };
  }

  #isFresh(key: CacheKey): boolean {
    const copy = this.#of.near.get(key);
    return copy !== undefined && copy.entry.storedAt + freshFor(copy.entry, key.freshMs) > this.#of.clock.now();
  }

  async #stateOf(
    key: CacheKey,
    question: KeyQuestion | undefined,
    reply: KeyReply | undefined,
    now: number,
  ): Promise<State> {
    if (!reply || this.#of.isDropping(this.#arrival.principal)) {
      return { key, found: this.#hidden, holder: reply?.lease === this.#nonce ? this.#nonce : undefined };
    }
    const { version, copy, lease: holder } = reply;
    const entry = await this.#entryOf(key, reply);
    const isNewer = entry !== undefined && (copy?.askedAt ?? 0) > (question?.have?.askedAt ?? 0);
    const isMade = question?.waitedFor !== undefined && holder === undefined && isNewer;
    const isElsewhere = holder !== undefined && holder !== this.#nonce;
    return { key, found: { entry, version, askedAt: now, isElsewhere, isMade }, holder };
  }

  async #entryOf(key: CacheKey, { version, copy }: KeyReply): Promise<Entry | undefined> {
    const { near, sealer, clock } = this.#of;
    const own = near.get(key);
    if (!copy?.value) return own?.version === version ? own.entry : undefined;
    const storedAt = clock.now() - copy.ageMs;
    const entry = await openCopy(sealer, key, { value: copy.value, storedAt });
    if (entry) near.set(key, { entry, version, askedAt: copy.askedAt });
    return entry;
  }

  async #saveOf(key: CacheKey, found: Found, { entry, drop }: Fetched, lease: string | undefined): Promise<Save> {
    const { sealer } = this.#of;
    const value = entry && (await sealCopy(sealer, key, entry));
    const isKept = value !== undefined && value.length <= MAX_VALUE_BYTES;
    const freshMs = freshFor(entry, key.freshMs);
    const copy = isKept ? { value, freshMs, lifeMs: key.lifeMs } : undefined;
    const { version, askedAt } = found;
    return { ...(await namedKey(sealer, key)), version, askedAt, lease, copy, drop };
  }

  /** The engine hears it in any case; the request waits for its reply while it has time left. */
  #inTime<T>(replying: Promise<T>): Promise<T | undefined> {
    const { clock } = this.#of;
    const begunAt = clock.now();
    this.#arrival.background(replying.catch(() => undefined));
    if (this.#leftMs <= 0) return Promise.resolve(undefined);
    return within(clock, this.#leftMs, replying)
      .catch(() => undefined)
      .finally(() => (this.#leftMs -= clock.now() - begunAt));
  }

  /** Those of leases that no fetch has used. */
  #giveBack(states: readonly State[]): void {
    for (const { key, found, holder } of states) {
      if (holder !== this.#nonce || this.#leases.isUsed(key)) continue;
      this.#leases.over(key);
      const told = this.#saveOf(key, found, {}, holder).then((save) =>
        this.#of.engine.save(this.#arrival.principal, save),
      );
      this.#arrival.background(told.catch(() => undefined));
    }
  }
}
