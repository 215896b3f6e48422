import { type Clock, pause, within } from '../../core/runtime.ts';
import { recent } from '../bounded.ts';
import type { AccountId } from '../store.ts';

/** Sends a request to the engine, which may be repeated. */
type Send = () => Promise<unknown>;

/** A refused credential that the engine does not know of yet. */
interface Refusal {
  /** Of the last request that was refused. */
  send: Send;
  isReported: boolean;
}

/** How long one try waits for the engine. */
export const BEGIN_MS = 1_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** How long a refused credential is reported; the next request that comes with it begins anew. */
const REFUSED_MS = 60_000;
const MAX_REFUSED = 10_000;

/** What an instance tells the engine again and again, until that has acknowledged it or its time is over. */
export class Reports {
  /** Those that the engine has not acknowledged yet. */
  pending = 0;
  readonly #clock: Clock;
  readonly #refused = recent<AccountId, Refusal>(MAX_REFUSED);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether its credential was refused and the engine has not acknowledged it. */
  isRefused(account: AccountId): boolean {
    return this.#refused.peek(account) !== undefined;
  }

  /** A new report of a refused credential, where there is none under way. */
  refused(account: AccountId): Promise<void> | undefined {
    const refusal = this.#refused.get(account);
    return refusal && !refusal.isReported ? this.#report(account, refusal) : undefined;
  }

  /** Tried once by each refused request, and again and again by one of an account. */
  refuse(account: AccountId, send: Send): Promise<unknown> {
    const tell = this.refusing(account, send);
    return this.refused(account) ?? tell();
  }

  /** The same request, which tells of a refused credential too. */
  refusing(account: AccountId, send: Send): Send {
    const refusal = this.#refused.peek(account) ?? { send, isReported: false };
    refusal.send = send;
    this.#refused.set(account, refusal);
    return () => this.#tell(account, refusal, send);
  }

  /** Resolves with whether the engine has acknowledged it, at the latest when its time is over. Never rejects. */
  async retry(send: Send, until: number): Promise<boolean> {
    this.pending++;
    let isAcknowledged = false;
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
      const tried = within(this.#clock, BEGIN_MS, send());
      await tried.then(() => (isAcknowledged = true)).catch(() => undefined);
      if (isAcknowledged || this.#clock.now() >= until) break;
      await pause(this.#clock, ms);
    }
    this.pending--;
    return isAcknowledged;
  }

  /** Until its last request is acknowledged, or it has fallen out of the map. */
  async #report(account: AccountId, refusal: Refusal): Promise<void> {
    refusal.isReported = true;
    const isThere = () => this.#refused.peek(account) === refusal;
    const report = async () => {
      if (isThere()) await this.#tell(account, refusal, refusal.send);
      if (isThere()) throw new Error('refused once more meanwhile');
    };
    await this.retry(report, this.#clock.now() + REFUSED_MS);
    refusal.isReported = false;
  }

  async #tell(account: AccountId, refusal: Refusal, send: Send): Promise<void> {
    await send();
    if (refusal.send === send && this.#refused.peek(account) === refusal) this.#refused.delete(account);
  }
}
