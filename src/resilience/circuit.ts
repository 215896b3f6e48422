import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { UpstreamCall } from '../upstream/client.ts';
import { type Attempt, type Gate, isGivenUp, type Outcome } from './gates.ts';
import { Recent } from './recent.ts';

const SPAN_MS = 10_000;
const LEAST_CALLS = 20;
const LEAST_OTHERS = 5;
const PROBE_MS = 5_000;

interface Circuit extends Required<Gate> {
  readonly isOpen: (caller: string) => boolean;
  /** @throws GatewayError `upstream_unavailable` while calls of this caller are not let through */
  assertClosed(caller: string, now: number): void;
}

/** What a call has shown about the upstream's health; `nothing` if it was not sent or was given up. */
type Sign = 'good' | 'bad' | 'nothing';

/**
 * Opens when half of the last calls failed. While open it refuses with `upstream_unavailable`, but lets one call through
 * every five seconds; it closes when one of these succeeds. Other callers do not wait for that call, as they would with
 * cockatiel's breaker, since an upstream that hangs would keep them all.
 */
export function circuit({ metrics }: { readonly metrics: Metrics }): Circuit {
  const breaker = new Breaker(metrics);
  const assertClosed = (caller: string, now: number) => {
    const ms = breaker.closedIn(caller, now);
    if (ms <= 0) return;
    metrics.refused('circuit');
    throw GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter: Math.ceil(ms / 1000) });
  };
  return {
    isOpen: (caller) => breaker.isOpen(caller),
    assertClosed,
    admit(attempt) {
      const caller = callerOf(attempt.call);
      assertClosed(caller, attempt.now);
      attempt.era = breaker.admit(caller, attempt.now);
    },
    settled: (attempt, outcome) => breaker.learn(signOf(attempt, outcome), attempt, outcome.now),
  };
}

const BAD: ReadonlySet<Fault> = new Set(['refused', 'unconnected', 'broken', 'timeout', 'unavailable', 'failed']);

function signOf(attempt: Attempt, { answer, error }: Outcome): Sign {
  if (answer) return 'good';
  if (!(error instanceof GatewayError)) return 'nothing';
  const { fault } = error.particulars;
  if (fault === 'not_sent' || isGivenUp(attempt, error)) return 'nothing';
  return fault !== undefined && BAD.has(fault) ? 'bad' : 'good';
}

/** The calls since the circuit last opened or closed. Outcomes of calls from an earlier era are ignored. */
export interface Era {
  readonly recent: Recent;
  /** For whom it is open: for all, or for the only caller there was when half of the calls failed. */
  openFor?: 'all' | { readonly caller: string };
  /** When the next call may be let through while it is open. */
  probeAt: number;
}

class Breaker {
  readonly #metrics: Metrics;
  #era: Era = closed();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  isOpen(caller: string): boolean {
    const { openFor } = this.#era;
    return openFor === 'all' || openFor?.caller === caller;
  }

  /** Milliseconds until the next call of this caller is let through. */
  closedIn(caller: string, now: number): number {
    return this.isOpen(caller) ? Math.max(0, this.#era.probeAt - now) : 0;
  }

  admit(caller: string, now: number): Era {
    // Counted from sending the probe, not from its end: an upstream that hangs is probed as often.
    if (this.isOpen(caller)) this.#era.probeAt = now + PROBE_MS;
    return this.#era;
  }

  learn(sign: Sign, { era, call }: Attempt, now: number): void {
    if (era !== this.#era) return;
    const caller = callerOf(call);
    const isProbe = this.isOpen(caller);
    if (isProbe && sign === 'good') this.#become(closed());
    else if (isProbe && sign === 'nothing') era.probeAt = now;
    else if (sign !== 'nothing' && era.openFor !== 'all') this.#count(sign, caller, now);
  }

  #count(sign: Sign, caller: string, now: number): void {
    const { recent } = this.#era;
    recent.call(now, caller);
    if (sign === 'good') return;
    recent.mark(now, caller);
    const scope = scopeOf(recent, now);
    if (scope === 'all') this.#become({ ...closed(), openFor: 'all', probeAt: now + PROBE_MS });
    // Calls of others still count, and for the operator the circuit is what it is for them: closed.
    else if (scope === 'alone' && !this.isOpen(caller))
      Object.assign(this.#era, { openFor: { caller }, probeAt: now + PROBE_MS });
  }

  #become(era: Era): void {
    this.#era = era;
    this.#metrics.circuitIs(era.openFor ? 'open' : 'closed');
  }
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

const closed = (): Era => ({ recent: new Recent(SPAN_MS), probeAt: 0 });
