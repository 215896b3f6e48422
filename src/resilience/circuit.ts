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
  /** @throws GatewayError `upstream_unavailable` where no call of this caller is let through just now */
  assertClosed(caller: string, now: number): void;
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

/** Calls of one stretch of being closed or open; what comes back from an earlier one is no news. */
export interface Era {
  readonly recent: Recent;
  /** For whom it is open: all, or a caller who was alone when half of its calls failed. */
  openFor?: 'all' | { readonly caller: string };
  /** When the next call of those may be let through. */
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
    // From when it is sent: an upstream that hangs is not tried less often.
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
    const whom = outFor(recent, now);
    if (whom === 'all') this.#become({ ...closed(), openFor: 'all', probeAt: now + PROBE_MS });
    // The others are still counted, and what the operator sees is what holds for them.
    else if (whom === 'alone' && !this.isOpen(caller))
      Object.assign(this.#era, { openFor: { caller }, probeAt: now + PROBE_MS });
  }

  #become(era: Era): void {
    this.#era = era;
    this.#metrics.circuitIs(era.openFor ? 'open' : 'closed');
  }
}

/** By the calls of all, and by those that are left without the account that failed most. */
function outFor(recent: Recent, now: number): 'all' | 'alone' | undefined {
  const all = recent.totals(now);
  if (all.calls < LEAST_CALLS || all.marked * 2 < all.calls) return undefined;
  const worst = recent.worst(now);
  const [calls, marked] = [all.calls - worst.calls, all.marked - worst.marked];
  if (calls === 0) return 'alone';
  return calls >= LEAST_OTHERS && marked * 2 >= calls ? 'all' : undefined;
}

/** Whom the circuit counts by. */
export const callerOf = ({ account, owner }: Pick<UpstreamCall, 'account' | 'owner'>): string => account ?? owner;

const closed = (): Era => ({ recent: new Recent(SPAN_MS), probeAt: 0 });
