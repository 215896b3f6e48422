import { type Fault, GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { UpstreamCall } from '../upstream/client.ts';
import { type Attempt, type Gate, isGivenUp, type Outcome } from './gates.ts';
import { Recent } from './recent.ts';

const SPAN_MS = 10_000;
const LEAST_CALLS = 20;
const LEAST_OTHERS = 5;
const PROBE_MS = 5_000;

/** The calls since the circuit last opened or closed. Outcomes of calls from an earlier era are ignored. */
export interface Era {
  readonly recent: Recent;
  /** For whom it is open: for all, or for the only caller there was when half of the calls failed. */
  openFor?: 'all' | { readonly caller: string };
  /** When the next call may be let through while it is open. */
  probeAt: number;
}

const closed = (): Era => ({ recent: new Recent(SPAN_MS), probeAt: 0 });

/**
 * Opens when half of the last calls failed. While open it refuses with `upstream_unavailable`, but lets one call through
 * every five seconds; it closes when one of these succeeds. Other callers do not wait for that call, as they would with
 * cockatiel's breaker, since an upstream that hangs would keep them all.
 */
export class Circuit implements Gate {
  readonly #metrics: Metrics;
  readonly #logger: Logger;
  #era = closed();

  constructor({ metrics, logger }: { readonly metrics: Metrics; readonly logger: Logger }) {
    this.#metrics = metrics;
    this.#logger = logger;
  }

  isOpen(caller: string): boolean {
    const { openFor } = this.#era;
    return openFor === 'all' || openFor?.caller === caller;
  }

  /** @throws GatewayError `upstream_unavailable` while calls of this caller are not let through */
  assertClosed(caller: string, now: number): void {
    const ms = this.isOpen(caller) ? this.#era.probeAt - now : 0;
    if (ms <= 0) return;
    this.#metrics.refused('circuit');
    throw GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter: Math.ceil(ms / 1000) });
  }

  admit(attempt: Attempt): void {
    const caller = callerOf(attempt.call);
    this.assertClosed(caller, attempt.now);
    // Counted from sending the probe, not from its end: an upstream that hangs is probed as often.
    if (this.isOpen(caller)) this.#era.probeAt = attempt.now + PROBE_MS;
    attempt.era = this.#era;
  }

  settled(attempt: Attempt, outcome: Outcome): void {
    const era = this.#era;
    if (attempt.era !== era) return;
    const sign = signOf(attempt, outcome);
    const caller = callerOf(attempt.call);
    const isProbe = this.isOpen(caller);
    if (isProbe && sign === 'good') this.#become(closed());
    else if (isProbe && sign === 'nothing') era.probeAt = outcome.now;
    else if (sign !== 'nothing' && era.openFor !== 'all') this.#count(sign, caller, outcome.now);
  }

  #count(sign: 'good' | 'bad', caller: string, now: number): void {
    const { recent } = this.#era;
    recent.count('calls', now, caller);
    if (sign === 'good') return;
    recent.count('marked', now, caller);
    const scope = scopeOf(recent, now);
    if (scope === 'all') this.#become({ ...closed(), openFor: 'all', probeAt: now + PROBE_MS });
    // Calls of others still count, and for the operator the circuit is what it is for them: closed.
    else if (scope === 'alone' && !this.isOpen(caller)) {
      Object.assign(this.#era, { openFor: { caller }, probeAt: now + PROBE_MS });
      this.#logger.warn({}, 'circuit opened for one account: all its calls of the upstream fail');
    }
  }

  #become(era: Era): void {
    this.#era = era;
    this.#metrics.circuitIs(era.openFor ? 'open' : 'closed');
    if (era.openFor) this.#logger.warn({}, 'circuit opened: the upstream fails and is not asked');
    else this.#logger.info({}, 'circuit closed: the upstream answers again');
  }
}

const BAD: ReadonlySet<Fault> = new Set(['refused', 'unconnected', 'broken', 'timeout', 'unavailable', 'failed']);

/** What a call has shown about the upstream's health; `nothing` if it was not sent or was given up. */
function signOf(attempt: Attempt, { answer, error }: Outcome): 'good' | 'bad' | 'nothing' {
  if (answer) return 'good';
  if (!(error instanceof GatewayError)) return 'nothing';
  const { fault } = error.particulars;
  if (fault === 'not_sent' || isGivenUp(attempt, error)) return 'nothing';
  return fault !== undefined && BAD.has(fault) ? 'bad' : 'good';
}

/**
 * For whom the circuit is to open. Looks at the calls of all, and at those that are left without the caller that failed
 * most, so that one caller's failures do not open it for the others.
 */
function scopeOf(recent: Recent, now: number): 'all' | 'alone' | undefined {
  const all = recent.totals(now);
  if (all.calls < LEAST_CALLS || all.marked * 2 < all.calls) return undefined;
  const worst = recent.worst(now);
  const [calls, marked] = [all.calls - worst.calls, all.marked - worst.marked];
  if (calls === 0) return 'alone';
  return calls >= LEAST_OTHERS && marked * 2 >= calls ? 'all' : undefined;
}

/** Who a call is counted for. */
export const callerOf = ({ account, owner }: Pick<UpstreamCall, 'account' | 'owner'>): string => account ?? owner;
