import { type Clock, pause, within } from '../../core/runtime.ts';
import { MemorySessions } from '../memory/sessions.ts';
import {
  type AccountId,
  epochOf,
  isSessionOver,
  type Revoked,
  type RevokeRequest,
  SESSION_MS,
  type SessionId,
  type SessionState,
} from '../store.ts';
import { untilKnown } from './changes.ts';
import type { Engine } from './engine.ts';
import type { Reports } from './reports.ts';

/** How long a sign-out waits until all instances know of it. */
const KNOWN_MS = 1_000;
/** How long a revoked session is reported by itself; after that with all the others. */
const REPORT_MS = 600_000;
/** Between reports of what was reported before, and between those that fail one after the other. */
const PAUSE_MS = 1;
const MAX_PAUSE_MS = 2_000;

type Report = readonly [AccountId, Revoked];

/** Revoked sessions that the engine keeps, and what this instance knows of them. */
export class SharedSessions {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #reports: Reports;
  /** Revoked here, or as the engine has said; all that is known while it does not answer. */
  readonly #own = new MemorySessions({ forgets: true });
  #isToReport = false;
  #isReporting = false;

  constructor(engine: Engine, clock: Clock, reports: Reports) {
    this.#engine = engine;
    this.#clock = clock;
    this.#reports = reports;
    engine.onAnother?.(() => void this.#reportAll());
  }

  /** Resolves with whether all instances know of it. */
  async revoke(request: RevokeRequest, revoked: Revoked): Promise<boolean> {
    this.#own.revoke(request.account, revoked, request.now);
    const reported = this.#report([request.account, revoked], this.#clock.now() + REPORT_MS);
    request.waitUntil(reported.then((isKnown) => isKnown || void this.#reportAll()));
    const isKnown = await within(this.#clock, KNOWN_MS, reported).catch(() => false);
    if (isKnown && this.#engine.changes) await untilKnown(this.#clock, 0);
    return isKnown;
  }

  /** As far as this instance knows. */
  stateOf(account: AccountId, session: SessionId, now: number): SessionState {
    return this.#own.stateOf(account, session, now);
  }

  /** By the engine's reply and by what this instance knows: the engine may have lost what it had. */
  learn({ account, now }: RevokeRequest, session: SessionId, reply: SessionState | undefined): SessionState {
    const own = this.stateOf(account, session, now);
    if (!reply) return { ...own, isLocal: true };
    const epoch = epochOf(reply.epoch); // text where an object is of an earlier release
    const isNews = epoch > own.epoch || (reply.isRevoked && !own.isRevoked);
    if (isNews) this.#own.revoke(account, { id: reply.isRevoked ? session.id : undefined, epoch }, now);
    const isTold = isSessionOver(session, { ...reply, epoch }); // else what it says of the time is of another session
    const sinceMs = isTold ? reply.sinceMs : undefined;
    return { ...reply, isRevoked: reply.isRevoked || own.isRevoked, epoch: Math.max(own.epoch, epoch), sinceMs };
  }

  /** Resolves with whether the engine has acknowledged it. */
  #report([account, { id, epoch }]: Report, until: number): Promise<boolean> {
    const revoked = { id, epoch: epoch > 0 ? epoch : undefined, lifeMs: SESSION_MS };
    return this.#reports.retry(() => this.#engine.change(account, { revoked }), until);
  }

  /** One after the other, with pauses: the store has others to answer too. What fails waits until all others were tried. */
  async #reportAll(): Promise<void> {
    this.#isToReport = true;
    if (this.#isReporting) return;
    this.#isReporting = true;
    let ms = PAUSE_MS;
    for (let left: readonly Report[] = []; this.#isToReport || left.length > 0;) {
      if (this.#isToReport) left = [...this.#own.all(this.#clock.now())];
      this.#isToReport = false;
      const failed: Report[] = [];
      for (const report of left) {
        const isKnown = await this.#report(report, -Infinity);
        if (!isKnown) failed.push(report);
        ms = isKnown ? PAUSE_MS : Math.min(2 * ms, MAX_PAUSE_MS);
        await pause(this.#clock, ms);
      }
      left = failed;
    }
    this.#isReporting = false;
  }
}
