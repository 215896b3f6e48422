import { type Clock, within } from '../../core/runtime.ts';
import { MemorySessions } from '../memory/sessions.ts';
import {
  type AccountId,
  epochOf,
  type Holder,
  type Revoked,
  type RevokeRequest,
  SESSION_MS,
  type SessionId,
  type SessionState,
} from '../store.ts';
import type { Engine } from './engine.ts';

interface SharedSessionsOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Sends until the engine has acknowledged it, or until then. Never rejects. */
  readonly retry: (send: () => Promise<unknown>, until: number) => Promise<void>;
}

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
  readonly #options: SharedSessionsOptions;
  /** Revoked here, or as the engine has said; all that is known while it does not answer. */
  readonly #known = new MemorySessions({ forgets: true });
  #isToReport = false;
  #isReporting = false;

  constructor(options: SharedSessionsOptions) {
    this.#options = options;
    options.engine.onAnother?.(() => void this.#reportAll());
  }

  /** Resolves with whether all instances know of it. */
  async revoke(request: RevokeRequest, revoked: Revoked): Promise<boolean> {
    this.#known.revoke(request, revoked, request.now);
    const { clock, retry } = this.#options;
    let isKnown = false;
    const send = () => this.#report(request.principal, revoked).then(() => (isKnown = true));
    const reported = retry(send, clock.now() + REPORT_MS);
    request.waitUntil(reported.then(() => isKnown || void this.#reportAll()));
    await within(clock, KNOWN_MS, reported).catch(() => undefined);
    return isKnown;
  }

  /** As far as this instance knows. */
  stateOf(holder: Holder, session: SessionId, now: number): SessionState {
    return this.#known.stateOf(holder, session, now);
  }

  /** By the engine's reply and by what this instance knows: the engine may have lost what it had. */
  learn(request: RevokeRequest, session: SessionId, reply: SessionState | undefined): SessionState {
    const own = this.stateOf(request, session, request.now);
    if (!reply) return { ...own, isLocal: true };
    const epoch = epochOf(reply.epoch); // text where an object is of an earlier release
    const isNews = epoch > own.epoch || (reply.isRevoked && !own.isRevoked);
    if (isNews) this.#known.revoke(request, { id: reply.isRevoked ? session.id : undefined, epoch }, request.now);
    return { ...reply, isRevoked: reply.isRevoked || own.isRevoked, epoch: Math.max(own.epoch, epoch) };
  }

  async #report(account: AccountId, { id, epoch }: Revoked): Promise<void> {
    const revoked = { id, epoch: epoch > 0 ? epoch : undefined, lifeMs: SESSION_MS };
    await this.#options.engine.change(account, { revoked });
  }

  /** One after the other, with pauses: the store has others to answer too. What fails waits until all others were tried. */
  async #reportAll(): Promise<void> {
    const { clock } = this.#options;
    this.#isToReport = true;
    if (this.#isReporting) return;
    this.#isReporting = true;
    let ms = PAUSE_MS;
    for (let left: readonly Report[] = []; this.#isToReport || left.length > 0;) {
      if (this.#isToReport) left = [...this.#known.all(clock.now())];
      this.#isToReport = false;
      const failed: Report[] = [];
      for (const report of left) {
        const isKnown = await this.#tryOnce(report);
        if (!isKnown) failed.push(report);
        ms = isKnown ? PAUSE_MS : Math.min(2 * ms, MAX_PAUSE_MS);
        await new Promise<void>((resolve) => void clock.after(ms, resolve));
      }
      left = failed;
    }
    this.#isReporting = false;
  }

  /** Resolves with whether the engine has acknowledged it. */
  async #tryOnce([account, revoked]: Report): Promise<boolean> {
    let isKnown = false;
    await this.#options.retry(() => this.#report(account, revoked).then(() => (isKnown = true)), -Infinity);
    return isKnown;
  }
}
