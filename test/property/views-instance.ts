import type { StoreAddress } from '../../src/entry/node/redis/address.ts';
import { RedisEngine } from '../../src/entry/node/redis/engine.ts';
import type { Clock } from '../../src/core/runtime.ts';
import type { Engine, Question } from '../../src/store/shared/engine.ts';
import { Sealer } from '../../src/store/shared/sealer.ts';
import { SharedStore } from '../../src/store/shared.ts';
import {
  type CacheKey,
  type Entry,
  EVERYTHING,
  isSessionOver,
  type NewWrite,
  type Revoked,
  type SessionId,
  type Snapshot,
  type Window,
  type WriteEnd,
} from '../../src/store/store.ts';

/** What a schedule reads and writes: of each thing it is known how often it was written. */
export interface Upstream {
  fetch(account: string, thing: string): Promise<number>;
  /** Writes these things, and says what they are from then on. */
  write(account: string, things: readonly string[]): Promise<Values>;
}

export type Values = Readonly<Record<string, number>>;

export interface ReadAsk {
  readonly account: string;
  readonly things: readonly string[];
  readonly session?: SessionId | undefined;
  readonly window?: Window | undefined;
}

export interface ReadDone {
  readonly values: Values;
  /** `local`: nobody was asked. `fetched`: one of them was, from the upstream. */
  readonly how: 'local' | 'asked' | 'fetched' | 'refused';
  /** Of its session: over, open, or as far as the instance knows, since the store did not say. */
  readonly session?: 'over' | 'open' | 'as far as known' | undefined;
  /** Of its window. */
  readonly isLetIn?: boolean | undefined;
  /** When the window ends in which the store has counted it, now or in advance, by the store's clock. */
  readonly windowEnd?: number | undefined;
  /** The store did not answer in time, or may not have: the instance counts alone. */
  readonly isAlone?: boolean | undefined;
}

export interface WriteAsk {
  readonly account: string;
  /** All of the account where there are none. */
  readonly things: readonly string[];
  readonly nonce: string;
  readonly key?: string | undefined;
  readonly session?: SessionId | undefined;
  readonly end: 'done' | 'unknown' | 'refused' | 'not_sent';
}

export interface WriteDone {
  /** What its answer tells: that of this write, or of an earlier one with its key. */
  readonly told?: Values | undefined;
  readonly isReplay: boolean;
}

export interface RevokeAsk {
  readonly account: string;
  readonly revoked: Revoked;
}

/** An instance as a schedule sees it. It may be in another process. */
export interface Instance {
  read(ask: ReadAsk): Promise<ReadDone>;
  write(ask: WriteAsk): Promise<WriteDone>;
  revoke(ask: RevokeAsk): Promise<boolean>;
  close(): Promise<void>;
}

export interface InstanceOptions {
  readonly address: StoreAddress;
  readonly upstream: Upstream;
  readonly windowMs: number;
  /** How long no copy is used after a lost connection. */
  readonly settlingMs: number;
  /** How fast its clock runs. */
  readonly rate: number;
  /** Resolves when the instance is not stopped. */
  readonly going: () => Promise<void>;
  /** Of a read, whether it waits for another instance that fetches the same. */
  readonly waits: () => boolean;
}

const SECRET = 'for-development-only-and-known-to-all';
const MAX_BYTES = 1_048_576;
const FRESH_MS = 30_000;
const LIFE_MS = 600_000;
/** No request takes longer, and no window of a replaced store is shorter. */
const REQUEST_MS = 800;
/** How long the mark of a write stands after its request, where its end is not known. */
const LATE_MS = 500;
const WAIT_MS = 1_000;

const THINGS = ['a', 'b'] as const;

const keyOf = (account: string, thing: string): CacheKey => ({
  account,
  key: thing,
  tags: [thing],
  freshMs: FRESH_MS,
  lifeMs: LIFE_MS,
});

const entryOf = (value: number, storedAt: number): Entry => ({
  text: String(value),
  links: [],
  etag: `"${value}"`,
  storedAt,
  validators: {},
});

/** Where an instance is stopped its timers stand still too. */
function clockOf({ rate, going }: Pick<InstanceOptions, 'rate' | 'going'>): Clock {
  const begun = performance.now();
  const scaled = (since: number, at: number) => since + (at - begun) * rate;
  const [now, wall] = [performance.timeOrigin + begun, Date.now()];
  return {
    now: () => scaled(now, performance.now()),
    wall: () => scaled(wall, performance.now()),
    after(ms, run) {
      let isCancelled = false;
      const timer = setTimeout(() => void going().then(() => isCancelled || run()), ms / rate);
      return () => {
        isCancelled = true;
        clearTimeout(timer);
      };
    },
  };
}

/** The end of a window, by the store's clock and by the process's. */
interface End {
  readonly end: number;
  readonly at: number;
}

interface Known {
  /** When the window ends by the last replies, and when the last one came. Several may come at once, of two windows. */
  ends: readonly End[];
  endAt: number;
  /** When the window ends of which something was counted in advance. */
  advanceEnd: number | undefined;
  failedAt: number;
  /** Questions under way. */
  asking: number;
}

/** What the store has said of requests that it was asked to count, by account. */
class Counted {
  readonly #known = new Map<string, Known>();

  of(account: string): Known {
    const known = this.#known.get(account) ?? {
      ends: [],
      endAt: 0,
      advanceEnd: undefined,
      failedAt: 0,
      asking: 0,
    };
    this.#known.set(account, known);
    return known;
  }

  /** The engine, overheard. */
  listenTo(engine: Engine): Engine {
    const snapshot = async (account: string, question: Question) => {
      const known = question.window && this.of(account);
      if (known) known.asking++;
      const sentAt = performance.now();
      try {
        const reply = await engine.snapshot(account, question);
        if (known && reply.use) {
          known.endAt = performance.now();
          const end = reply.now + reply.use.leftMs;
          known.ends = [...known.ends.slice(1 - MOST_ENDS), { end, at: known.endAt + reply.use.leftMs }];
          if (reply.use.advance) known.advanceEnd = end;
        }
        return reply;
      } catch (error) {
        if (known) known.failedAt = performance.now();
        throw error;
      } finally {
        // Who did not wait so long was counted in the instance alone.
        if (known && performance.now() - sentAt > PATIENCE_MS) known.failedAt = performance.now();
        if (known) known.asking--;
      }
    };
    return new Proxy(engine, {
      get(target, name) {
        if (name === 'snapshot') return snapshot;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
      },
    });
  }
}

/** Questions of one account that may be under way together. */
const MOST_ENDS = 32;

/** The one that the reply to a request spoke of; `at`: when its window ends by the process's clock. */
function endNear(ends: readonly End[], at: number): number | undefined {
  const [nearest] = ends.toSorted((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at));
  return nearest?.end;
}

/** Less than what a request waits for the store. */
const PATIENCE_MS = 150;

const nothing = () => undefined;

/** A store over an engine, in this process, and what a gateway does with it. */
export class LocalInstance implements Instance {
  readonly #options: InstanceOptions;
  readonly #engine: RedisEngine;
  readonly #store: SharedStore;
  readonly #clock: Clock;
  readonly #counted: Counted;
  readonly #flights = new Map<string, Promise<number>>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #waitUntil = (work: Promise<unknown>) => {
    this.#work.add(work);
    const done = () => void this.#work.delete(work);
    work.then(done, done);
  };

  private constructor(
    options: InstanceOptions,
    made: {
      readonly engine: RedisEngine;
      readonly store: SharedStore;
      readonly clock: Clock;
      readonly counted: Counted;
    },
  ) {
    this.#options = options;
    this.#engine = made.engine;
    this.#store = made.store;
    this.#clock = made.clock;
    this.#counted = made.counted;
  }

  static async open(options: InstanceOptions): Promise<LocalInstance> {
    const clock = clockOf(options);
    const engine = await RedisEngine.open({
      address: options.address,
      windowMs: options.windowMs,
      settlingMs: options.settlingMs,
      onCommand: nothing,
      onChange: nothing,
      onTrouble: nothing,
    });
    const counted = new Counted();
    const sealer = new Sealer([SECRET], 'http://upstream.test/');
    const store = new SharedStore({
      engine: counted.listenTo(engine),
      sealer,
      maxBytes: MAX_BYTES,
      clock,
      waitMs: WAIT_MS,
    });
    return new LocalInstance(options, { engine, store, clock, counted });
  }

  async read({ account, things, session, window }: ReadAsk): Promise<ReadDone> {
    await this.#options.going();
    const now = this.#clock.now();
    const beganAt = performance.now();
    const keys = things.map((thing) => keyOf(account, thing));
    const asked = this.#store.snapshot({
      ...this.#of(account, now),
      window,
      session,
      keys,
      fetches: true,
    });
    const snapshot = asked instanceof Promise ? await asked : asked;
    const isAsked = asked instanceof Promise;
    const counted = this.#counted.of(account);
    const leftMs = (snapshot.use?.endsAt ?? 0) - this.#clock.now();
    const windowEnd = isAsked ? endNear(counted.ends, performance.now() + leftMs) : counted.advanceEnd;
    const isAlone = isAsked && (counted.asking > 0 || counted.failedAt >= beganAt || counted.endAt < beganAt);
    const isLetIn = window && (snapshot.use === undefined || snapshot.use.used <= window.limit);
    const isOver = session && isSessionOver(session, snapshot.session);
    const openness = snapshot.session?.isLocal ? 'as far as known' : 'open';
    const told: ReadDone['session'] = isOver ? 'over' : openness;
    const facts = { isLetIn, windowEnd, isAlone, session: session && told };
    if (isLetIn === false || isOver) {
      snapshot.end?.();
      return { ...facts, values: {}, how: 'refused' };
    }
    const fresh = keys.map((key) => this.#fresh(snapshot.copy(key, now), now));
    const valued = await Promise.all(keys.map(async (key, i) => fresh[i] ?? this.#fetched(snapshot, key)));
    snapshot.end?.();
    const isFetched = fresh.includes(undefined);
    const values = Object.fromEntries(things.map((thing, i) => [thing, valued[i] ?? Number.NaN]));
    return { ...facts, values, how: isFetched ? 'fetched' : isAsked ? 'asked' : 'local' };
  }

  async write({ account, things, nonce, key, session, end }: WriteAsk): Promise<WriteDone> {
    await this.#options.going();
    const now = this.#clock.now();
    const write: NewWrite = {
      ...this.#of(account, now),
      window: undefined,
      tags: things.length > 0 ? things : [EVERYTHING],
      hasCopies: true,
      nonce,
      key,
      session,
      endsAt: now + REQUEST_MS,
      until: now + REQUEST_MS + LATE_MS,
      keyMs: LIFE_MS,
      fingerprint: key ?? '',
      isPurchase: false,
    };
    const { record, refusal, isLimited, isRevoked } = await this.#store.beginWrite(write);
    await this.#options.going();
    const recorded = record && typeof record.outcome === 'object' ? record.outcome.text : undefined;
    if (recorded) return { told: JSON.parse(recorded) as Values, isReplay: true };
    if (record || refusal || isLimited || isRevoked) return { isReplay: record !== undefined };
    const isLate = this.#clock.now() > write.endsAt;
    const isWritten = !isLate && (end === 'done' || end === 'unknown');
    const told = isWritten
      ? await this.#options.upstream.write(account, things.length > 0 ? things : THINGS)
      : undefined;
    await this.#options.going();
    const done: WriteEnd = end === 'done' ? { status: 200, text: JSON.stringify(told) } : end;
    await this.#store.endWrite(write, isLate ? 'not_sent' : done);
    await this.#options.going();
    return { told, isReplay: false };
  }

  async revoke({ account, revoked }: RevokeAsk): Promise<boolean> {
    await this.#options.going();
    const { now, waitUntil } = this.#of(account, this.#clock.now());
    const isKnown = await this.#store.revoke({ account, now, waitUntil }, revoked);
    await this.#options.going();
    return isKnown;
  }

  async close(): Promise<void> {
    this.#engine.close();
    await Promise.resolve();
  }

  #of(account: string, now: number) {
    return { account, owner: account, now, waitUntil: this.#waitUntil };
  }

  #fresh(entry: Entry | undefined, now: number): number | undefined {
    return entry && entry.storedAt + FRESH_MS > now ? Number(entry.text) : undefined;
  }

  async #fetched(snapshot: Snapshot, key: CacheKey): Promise<number> {
    const { going, upstream, waits } = this.#options;
    const found = await snapshot.lookup(key, this.#clock.now());
    const known = this.#fresh(found.entry, this.#clock.now());
    if (known !== undefined) return known;
    const leased = waits() ? snapshot.lease?.(key, found, AbortSignal.timeout(REQUEST_MS)) : undefined;
    const latest = (await leased?.catch(() => undefined)) ?? found;
    const made = latest === found ? undefined : this.#fresh(latest.entry, this.#clock.now());
    if (made !== undefined) return made;
    // Equal reads share a call, if nothing was written in between.
    const flight = `${key.account} ${latest.version} ${key.key}`;
    const before = this.#flights.get(flight);
    if (before) return before;
    const fetched = async () => {
      await going();
      const value = await upstream.fetch(key.account, key.key);
      await going();
      await snapshot.save(key, latest, { entry: entryOf(value, this.#clock.now()) });
      this.#flights.delete(flight);
      return value;
    };
    const fetching = fetched();
    this.#flights.set(flight, fetching);
    return fetching;
  }
}
