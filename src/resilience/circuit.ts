import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { UpstreamCall } from '../upstream/client.ts';
import type { Attempt, Gate, Outcome } from './gates.ts';
import { Recent } from './recent.ts';

const SPAN_MS = 10_000;
const LEAST_CALLS = 20;
const LEAST_OTHERS = 5;
const PROBE_MS = 5_000;

interface Circuit extends Required<Gate> {
  readonly isOpen: () => boolean;
  /** @throws GatewayError `upstream_unavailable` where no call is let through just now */
  assertClosed(now: number): void;
}

/** What a call has shown of the upstream's health; `nothing` where it was held back or given up. */
type Sign = 'good' | 'bad' | 'nothing';

/**
 * Stops asking an upstream of which half of the last calls failed, and lets one through every five seconds until that
 * one comes back. Nobody waits for it: cockatiel's breaker has callers wait while one is tried, for as long as an
 * upstream that hangs takes, and opens at more than half. Refuses with `upstream_unavailable` while open.
 */
export function circuit({ metrics }: { readonly metrics: Metrics }): Circuit {
  const breaker = new Breaker(metrics);
  const assertClosed = (now: number) => {
    const ms = breaker.closedIn(now);
    if (ms <= 0) return;
    metrics.refused('circuit');
    throw GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter: Math.ceil(ms / 1000) });
  };
  return {
    isOpen: () => breaker.isOpen,
    assertClosed,
    admit(attempt) {
      assertClosed(attempt.now);
      attempt.era = breaker.admit(attempt.now);
    },
    settled: (attempt, outcome) => breaker.learn(signOf(attempt, outcome), attempt, outcome.now),
  };
}

const BAD: ReadonlySet<Fault> = new Set(['refused', 'unconnected', 'broken', 'timeout', 'unavailable', 'failed']);

function signOf({ call, isGivenUp }: Attempt, { answer, error }: Outcome): Sign {
  if (answer) return 'good';
  if (!(error instanceof GatewayError)) return 'nothing';
  const { fault } = error.particulars;
  // A call that was given up ends with the reason of whoever gave it up: only its time is news of the upstream.
  if (fault === 'not_sent' || ((isGivenUp || call.signal.aborted) && fault !== 'timeout')) return 'nothing';
  return fault !== undefined && BAD.has(fault) ? 'bad' : 'good';
}

/** Calls of one stretch of being closed or open; what comes back from an earlier one is no news. */
export interface Era {
  readonly recent: Recent;
  /** When the next call may be let through; undefined while closed. */
  probeAt: number | undefined;
}

class Breaker {
  readonly #metrics: Metrics;
  #era: Era = closed();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  get isOpen(): boolean {
    return this.#era.probeAt !== undefined;
  }

  /** Milliseconds until the next call is let through. */
  closedIn(now: number): number {
    return Math.max(0, (this.#era.probeAt ?? 0) - now);
  }

  admit(now: number): Era {
    const era = this.#era;
    // From when it is sent: an upstream that hangs is not tried less often.
    if (era.probeAt !== undefined) era.probeAt = now + PROBE_MS;
    return era;
  }

  learn(sign: Sign, { era, call }: Attempt, now: number): void {
    if (era === undefined || era !== this.#era) return;
    if (era.probeAt === undefined) this.#count(sign, { recent: era.recent, caller: callerOf(call), now });
    else if (sign === 'good') this.#become(closed());
    else if (sign === 'nothing') era.probeAt = now;
  }

  #count(sign: Sign, { recent, caller, now }: { recent: Recent; caller: string; now: number }): void {
    if (sign === 'nothing') return;
    recent.call(now, caller);
    if (sign === 'good') return;
    recent.mark(now, caller);
    if (isOut(recent, now)) this.#become({ ...closed(), probeAt: now + PROBE_MS });
  }

  #become(era: Era): void {
    this.#era = era;
    this.#metrics.circuitIs(era.probeAt === undefined ? 'closed' : 'open');
  }
}

/** By the calls of all, and by those that are left without the account that failed most. */
function isOut(recent: Recent, now: number): boolean {
  const all = recent.totals(now);
  if (all.calls < LEAST_CALLS || all.marked * 2 < all.calls) return false;
  const worst = recent.worst(now);
  const [calls, marked] = [all.calls - worst.calls, all.marked - worst.marked];
  return calls === 0 || (calls >= LEAST_OTHERS && marked * 2 >= calls);
}

const callerOf = ({ account, owner }: UpstreamCall) => account ?? owner;

const closed = (): Era => ({ recent: new Recent(SPAN_MS), probeAt: undefined });
