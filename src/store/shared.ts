import { GatewayError } from '../core/errors.ts';
import type { Background, Clock } from '../core/runtime.ts';
import { within } from '../core/within.ts';
import { BoundedMap } from './bounded.ts';
import { MemoryLimits } from './memory/limits.ts';
import { type Engine, NotAsked, type Snapshot as Reply, type WriteBegun, type WriteEnded } from './shared/engine.ts';
import { namedTags } from './shared/names.ts';
import { NearCache } from './shared/near-cache.ts';
import { openRecord, recordName, sealRecord } from './shared/sealed-record.ts';
import type { Sealer } from './shared/sealer.ts';
import { SharedSnapshot, type SnapshotTools } from './shared/snapshot.ts';
import {
  type AccountId,
  type Arrival,
  type Begun,
  BUDGET,
  hidden,
  type Holder,
  type NewWrite,
  type Snapshot,
  type Store,
  type Usage,
  type WindowUse,
  type WriteEnd,
} from './store.ts';

/** Says something to the engine. */
type Telling = () => Promise<unknown>;

interface SharedStoreOptions {
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

const BEGIN_MS = 1_000;
/** How long an answer waits for the engine to hear how its write ended. */
const END_MS = 200;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** How long the engine is told that a credential was refused, if nobody comes with it; it is told with each request. */
const DROP_MS = 60_000;
const MAX_DROPPING = 10_000;
/** Beyond it a write that was not sent is not told of: its mark ends by its time. */
const MAX_UNHEARD = 10_000;
/** How long the engine is told that a write with a key was not sent: its record would stay for a day. */
const BURNT_KEY_MS = 600_000;
/** Of one and the same 429 several gates hear. */
const SAME_COOLDOWN_MS = 500;
const RETRY_SECONDS = 1;

/**
 * State that instances share through an engine: Redis, or Durable Objects. Everything that leaves this process has a
 * hashed name and a sealed value (docs/shared-state.md).
 */
export class SharedStore implements Store {
  readonly #of: SharedStoreOptions;
  readonly #near: NearCache;
  readonly #tools: SnapshotTools;
  readonly #limits = new MemoryLimits();
  /** Of this instance, begun or ended: without the engine no read joins one from before a write. */
  #writes = 0;
  /** Accounts of which the engine has yet to hear that their credential was refused, and how to tell it. */
  readonly #dropping = new BoundedMap<AccountId, Telling>({ max: MAX_DROPPING });
  #unheard = 0;

  constructor(options: SharedStoreOptions) {
    this.#of = options;
    this.#near = new NearCache(options.maxBytes);
    this.#tools = {
      ...options,
      near: this.#near,
      away: () => hidden(`away ${this.#writes}`),
      learn: (holder, reply) => this.#learn(holder, reply),
      isDropping: (account) => this.#dropping.peek(account) !== undefined,
      dropEverything: (arrival, save) =>
        this.#dropUntilHeard(arrival, () => options.engine.save(arrival.principal, save)),
    };
  }

  async snapshot(arrival: Arrival): Promise<Snapshot> {
    const { principal, window, now, keys = () => [], background } = arrival;
    const dropping = this.#dropping.get(principal);
    if (dropping) background(this.#drop(principal, dropping).catch(() => undefined));
    const snapshot = new SharedSnapshot(this.#tools, arrival);
    await snapshot.begin(
      keys((key) => this.#near.get(key)?.entry),
      window,
    );
    // So that this instance goes on from there, should the engine be late next time.
    if (window && snapshot.use) this.#limits.learn(arrival, window.name, snapshot.use);
    else if (window) snapshot.use = this.#limits.take(arrival, window, now);
    return snapshot;
  }

  async beginWrite(write: NewWrite): Promise<Begun> {
    const { engine, clock } = this.#of;
    const { principal, window, now, key, until } = write;
    this.#writes++;
    const asked = await this.#beginOf(write);
    try {
      return await this.#begunOf(write, await within(clock, BEGIN_MS, engine.beginWrite(principal, asked)));
    } catch (error) {
      // It may have begun all the same, or begin later.
      const isWorthTelling = !(error instanceof NotAsked) && this.#unheard < MAX_UNHEARD;
      const ended = { ...write, until: key === undefined ? until : clock.now() + BURNT_KEY_MS };
      if (isWorthTelling) void this.#tell(ended, await this.#endOf(write, 'not_sent'));
      return { use: window && this.#limits.take(write, window, now), refusal: unavailable(error) };
    }
  }

  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    this.#writes++;
    const told = this.#tell(write, await this.#endOf(write, end));
    await within(this.#of.clock, END_MS, told).catch(() => undefined);
  }

  coolDown(holder: Holder, until: number, background: Background): void {
    const isNews = until > this.#limits.coolsUntil(holder.principal) + SAME_COOLDOWN_MS;
    this.#limits.coolDown(holder, until);
    const cooldownMs = Math.ceil(until - this.#of.clock.now());
    // That others do not hear of it costs the upstream a call or two, and them a 429 each.
    if (isNews && cooldownMs > 0)
      background(this.#of.engine.change(holder.principal, { cooldownMs }).catch(() => undefined));
  }

  coolsUntil(account: AccountId): number {
    return this.#limits.coolsUntil(account);
  }

  spend(holder: Holder, now: number, background: Background): WindowUse {
    background(this.#of.engine.change(holder.principal, { spent: BUDGET }).catch(() => undefined));
    return this.#limits.take(holder, BUDGET, now);
  }

  /** Ends of writes, and refusals of credentials, that the engine has not heard yet. */
  get unheard(): number {
    return this.#unheard;
  }

  usage(): Usage {
    return { ...this.#near.usage(), ...this.#limits.usage(), records: 0, firmRecords: 0 };
  }

  #learn(holder: Holder, { cooldownMs, budget }: Reply): void {
    const now = this.#of.clock.now();
    if (cooldownMs > 0) this.#limits.coolDown(holder, now + cooldownMs);
    const endsAt = now + (budget?.leftMs ?? 0);
    if (budget && budget.used > 0) this.#limits.learn(holder, BUDGET.name, { used: budget.used, endsAt });
  }

  async #beginOf(write: NewWrite) {
    const { sealer } = this.#of;
    const { nonce, window, now, endsAt, until, key, keyMs, fingerprint, isPurchase } = write;
    const record = key === undefined ? undefined : await sealRecord(sealer, write, 'under_way');
    return {
      nonce,
      window,
      tags: await namedTags(sealer, write.tags),
      busyMs: endsAt - now,
      markMs: until - now,
      record: record && { ...record, lifeMs: keyMs },
      purchase: isPurchase ? await sealer.nameOf(`purchase ${fingerprint}`) : undefined,
    };
  }

  async #begunOf(write: NewWrite, begun: WriteBegun): Promise<Begun> {
    const use = begun.use && { used: begun.use.used, endsAt: this.#of.clock.now() + begun.use.leftMs };
    const { fingerprint } = write;
    if (begun.is === 'begun') return { use };
    if (begun.is === 'limit') return { use, isHeldBack: true };
    if (begun.is === 'equal') return { use, known: { fingerprint, outcome: begun.standing } };
    if (begun.is === 'record') return { use, known: await openRecord(this.#of.sealer, write, begun) };
    if (begun.is === 'another_store') return { use, refusal: replaced(begun.leftMs) };
    if (begun.is !== 'cooldown') return { use, refusal: unavailable(begun.is) };
    this.#limits.coolDown(write, this.#of.clock.now() + begun.cooldownMs);
    return { use, isHeldBack: true };
  }

  async #endOf(write: NewWrite, end: WriteEnd): Promise<WriteEnded> {
    const { sealer, clock } = this.#of;
    const { nonce, until, now, key, keyMs, fingerprint, isPurchase } = write;
    const how = typeof end === 'object' ? 'done' : end === 'credential_refused' ? 'refused' : end;
    const outcome = typeof end === 'object' ? end : 'unknown';
    const isFreed = how === 'refused' || how === 'not_sent';
    const record = isFreed ? { key: await recordName(sealer, write) } : await sealRecord(sealer, write, outcome);
    return {
      nonce,
      end: how,
      tags: await namedTags(sealer, write.tags),
      purchase: isPurchase ? await sealer.nameOf(`purchase ${fingerprint}`) : undefined,
      markMs: Math.max(1, until - clock.now()),
      record: key === undefined ? undefined : { ...record, lifeMs: Math.max(1, now + keyMs - clock.now()) },
      dropEverything: end === 'credential_refused',
    };
  }

  #tell(write: NewWrite, ended: WriteEnded): Promise<void> {
    const { engine, clock } = this.#of;
    const { principal, until, background } = write;
    const ask = () => engine.endWrite(principal, { ...ended, markMs: Math.max(1, until - clock.now()) });
    if (!ended.dropEverything) return this.#insist(ask, { until, background });
    return this.#dropUntilHeard(write, ask);
  }

  /** Until the engine has heard it, nothing of the account is answered from a copy here. */
  #dropUntilHeard({ principal, owner, background }: Arrival | NewWrite, ask: Telling): Promise<void> {
    this.#dropping.set(principal, ask, owner);
    const until = this.#of.clock.now() + DROP_MS;
    return this.#insist(() => this.#drop(principal, ask), { until, background });
  }

  async #drop(account: AccountId, ask: Telling): Promise<void> {
    await ask();
    if (this.#dropping.peek(account) === ask) this.#dropping.delete(account);
  }

  /** Asks until the engine has heard it, in the background too. Comes out then, or when its time is over. */
  #insist(
    ask: Telling,
    { until, background }: { readonly until: number; readonly background: Background },
  ): Promise<void> {
    this.#unheard++;
    const told = this.#askAgain(ask, until).finally(() => this.#unheard--);
    background(told);
    return told;
  }

  async #askAgain(ask: Telling, until: number): Promise<void> {
    const { clock } = this.#of;
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
      const isHeard = await within(clock, BEGIN_MS, ask()).then(
        () => true,
        () => false,
      );
      if (isHeard || clock.now() >= until) return;
      await new Promise<void>((resolve) => void clock.after(ms, resolve));
    }
  }
}

/** So that whoever tries again does so when it may succeed. */
const replaced = (leftMs: number) =>
  GatewayError.of('store_unavailable', {
    fault: 'not_sent',
    retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
    detail: 'The shared store was restarted or replaced a moment ago; until it can be relied upon nothing is bought.',
  });

const unavailable = (cause: unknown) =>
  GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter: RETRY_SECONDS, cause });
