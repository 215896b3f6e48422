import { type Soon, type WaitUntil, within } from '../core/runtime.ts';
import { Copies } from './copies.ts';
import { MemoryAccounts } from './memory/accounts.ts';
import { Counting } from './shared/counting.ts';
import { KNOWN_MS, untilKnown } from './shared/changes.ts';
import { NotAsked, useOf } from './shared/engine.ts';
import { BEGIN_MS, Reports } from './shared/reports.ts';
import { SharedSessions } from './shared/sessions.ts';
import { type SharedParts, type SharedStoreOptions, Waits } from './shared/parts.ts';
import { SharedSnapshot } from './shared/snapshot.ts';
import { Views } from './shared/views.ts';
import {
  type AccountId,
  type Begun,
  type CacheKey,
  type Entry,
  hidden,
  isSessionOver,
  type NewWrite,
  type OwnedAccount,
  type Revoked,
  type RevokeRequest,
  type Snapshot,
  type SnapshotRequest,
  type Store,
  type Usage,
  type WriteEnd,
} from './store.ts';
import { beginOf, begunOf, endedOf, unavailable, type WriteBegun, type WriteEnded } from './writes.ts';

/** How long an answer waits for the engine to acknowledge the end of its write. */
const END_MS = 200;
/** With more pending, a write that was not sent is not reported: its mark ends by its time. */
const MAX_PENDING = 10_000;
/** How long it is reported that a write with a key was not sent: otherwise its record stays for a day. */
const UNSENT_KEY_MS = 600_000;
/** Cooldowns that differ by less come from the same 429. */
const SAME_COOLDOWN_MS = 500;
const RETRY_SECONDS = 1;
/** The engine keeps them. */
const NO_RECORDS = { records: 0, recordBytes: 0, recordBytesLimit: 0 };

/**
 * State that instances share through an engine: Redis, or Durable Objects. Everything that leaves this process has a
 * hashed name and a sealed value (docs/shared-state.md).
 */
export class SharedStore implements Store {
  readonly #parts: SharedParts;
  /** Begun or ended here: while the engine does not answer, no read shares a call from before a write. */
  #writes = 0;
  /** When writes under way were announced, by nonce, where other instances may not have heard of it at once. */
  readonly #announced = new Map<string, number>();

  constructor(options: SharedStoreOptions) {
    const { engine, clock, maxBytes } = options;
    const reports = new Reports(clock);
    const copies = new Copies(maxBytes);
    const limits = new MemoryAccounts();
    this.#parts = {
      ...options,
      reports,
      waits: new Waits(),
      copies,
      views: engine.changes && new Views(engine.changes, copies),
      limits,
      counting: new Counting({ engine, clock, limits }),
      sessions: new SharedSessions(engine, clock, reports),
      away: () => hidden(`away ${this.#writes}`),
    };
  }

  /** Reports that the engine has not acknowledged yet. */
  get pending(): number {
    return this.#parts.reports.pending;
  }

  /** Whether the engine answers in time. */
  get isUsable(): boolean {
    return this.#parts.waits.isGood(this.#parts.clock.now());
  }

  /** Questions whose answers were not waited for any longer. */
  get waitsGivenUp(): number {
    return this.#parts.waits.givenUp;
  }

  /** Hits that asked nobody. */
  get unaskedHits(): number {
    return this.#parts.views?.hits ?? 0;
  }

  snapshot(request: SnapshotRequest): Soon<Snapshot> {
    const refused = this.#parts.reports.refused(request.account);
    if (refused) request.waitUntil(refused);
    return new SharedSnapshot(this.#parts, request).begin();
  }

  copyOf(key: CacheKey): Entry | undefined {
    return this.#parts.copies.get(key)?.entry;
  }

  async beginWrite(write: NewWrite): Promise<Begun> {
    const { engine, clock, limits, sealer, sessions, views } = this.#parts;
    const { account, window, now, key, until, session } = write;
    if (session && isSessionOver(session, sessions.stateOf(account, session, now))) {
      if (views) await untilKnown(clock, 0);
      return { use: undefined, isRevoked: true };
    }
    this.#writes++;
    views?.drop(account);
    const advance = window && limits.takeAdvance(write, window);
    const counted = advance ? { ...write, window: undefined } : write;
    const begin = await sealer.sealWrite(write, beginOf(counted, write.keyMs));
    try {
      const begun = await within(clock, BEGIN_MS, engine.beginWrite(account, begin));
      this.#parts.waits.inTime();
      if (views && begun.is === 'begun' && write.hasCopies) this.#announced.set(write.nonce, clock.now());
      const tells = write.hasCopies || begun.is === 'revoked';
      if (views && tells && begun.sinceMs !== undefined) await untilKnown(clock, begun.sinceMs);
      const answer = await this.#begunOf(write, begun);
      return { ...answer, use: advance ?? answer.use };
    } catch (error) {
      this.#parts.waits.giveUp(clock.now());
      // It may have begun, or begin later.
      const isReported = !write.isQuestion && !(error instanceof NotAsked) && this.pending < MAX_PENDING;
      const ended = { ...write, until: key === undefined ? until : clock.now() + UNSENT_KEY_MS };
      if (isReported) void this.#report(ended, await this.#endOf(write, 'not_sent'));
      return {
        use: advance ?? (window && limits.take(write, window, now)),
        refusal: unavailable(error, RETRY_SECONDS),
      };
    }
  }

  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    const { clock, views } = this.#parts;
    this.#writes++;
    if (end === 'credential_refused') views?.drop(write.account);
    const announcedAt = this.#announced.get(write.nonce);
    this.#announced.delete(write.nonce);
    const isHeld = announcedAt !== undefined && (typeof end === 'object' || end === 'unknown');
    const heldMs = isHeld && write.isPurchase ? KNOWN_MS : undefined;
    const reported = this.#report(write, { ...(await this.#endOf(write, end)), heldMs });
    const acknowledged = within(clock, END_MS, reported).catch(() => undefined);
    await Promise.all([acknowledged, isHeld && untilKnown(clock, clock.now() - announcedAt)]);
  }

  async revoke(request: RevokeRequest, revoked: Revoked): Promise<boolean> {
    this.#parts.views?.drop(request.account);
    return this.#parts.sessions.revoke(request, revoked);
  }

  coolDown(owned: OwnedAccount, until: number, waitUntil: WaitUntil): void {
    const { engine, clock, limits } = this.#parts;
    const isLater = until > limits.coolsUntil(owned.account) + SAME_COOLDOWN_MS;
    limits.coolDown(owned, until);
    const cooldownMs = Math.ceil(until - clock.now());
    // Where it gets lost, each other instance gets a 429 of its own.
    if (isLater && cooldownMs > 0) waitUntil(engine.change(owned.account, { cooldownMs }).catch(() => undefined));
  }

  accept(account: AccountId): void {
    this.#parts.limits.accept(account);
  }

  coolsUntil(account: AccountId): number {
    return this.#parts.limits.coolsUntil(account);
  }

  usage(): Usage {
    return { ...this.#parts.limits.usage(), ...this.#parts.copies.usage(), ...NO_RECORDS };
  }

  async #begunOf(write: NewWrite, begun: WriteBegun): Promise<Begun> {
    const { clock, limits, sealer } = this.#parts;
    const now = clock.now();
    const use = begun.use && useOf(begun.use, now);
    if (begun.is === 'cooldown') limits.coolDown(write, now + begun.cooldownMs);
    const opened = begun.is === 'record' ? { ...begun, value: await sealer.openRecord(write, begun.value) } : begun;
    return { use, ...begunOf(write, opened, RETRY_SECONDS) };
  }

  #endOf(write: NewWrite, end: WriteEnd): Promise<WriteEnded> {
    return this.#parts.sealer.sealWrite(write, endedOf(write, end, this.#parts.clock.now()));
  }

  #report(write: NewWrite, ended: WriteEnded): Promise<boolean> {
    const { engine, clock, reports } = this.#parts;
    const { account, until, waitUntil } = write;
    const send = () => engine.endWrite(account, { ...ended, markMs: Math.max(1, until - clock.now()) });
    const done = reports.retry(ended.dropEverything ? reports.refusing(account, send) : send, until);
    waitUntil(done);
    return done;
  }
}
