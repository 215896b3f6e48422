import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Layer, UpstreamCall } from '../upstream/client.ts';
import { Recent } from './recent.ts';

interface CircuitOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
}

const SPAN_MS = 10_000;
const LEAST_CALLS = 20;
const PROBE_MS = 5_000;

interface Circuit {
  readonly layer: Layer;
  readonly isOpen: () => boolean;
  /** @throws GatewayError `upstream_unavailable` where no call is let through just now */
  readonly assertClosed: () => void;
}

/** What a call has shown of the upstream's health; `nothing` where it was held back or given up. */
type Sign = 'good' | 'bad' | 'nothing';

/**
 * Stops asking an upstream of which half of the last calls failed, and lets one through every five seconds until that
 * one comes back. Nobody waits for it: cockatiel's breaker has callers wait while one is tried, for as long as an
 * upstream that hangs takes, and opens at more than half.
 * @throws GatewayError `upstream_unavailable` while open
 */
export function circuit({ clock, metrics }: CircuitOptions): Circuit {
  const breaker = new Breaker(metrics);
  const refusal = (ms: number) => {
    metrics.refused('circuit');
    const retryAfter = Math.max(1, Math.ceil(ms / 1000));
    return GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter });
  };
  const layer: Layer = (next) => async (call) => {
    const pass = breaker.admit(clock.now());
    if (typeof pass === 'number') throw refusal(pass);
    try {
      const answer = await next(call);
      breaker.learn('good', pass, clock.now());
      return answer;
    } catch (error) {
      breaker.learn(signOf(error, call), pass, clock.now());
      throw error;
    }
  };
  const assertClosed = () => {
    const ms = breaker.closedIn(clock.now());
    if (ms > 0) throw refusal(ms);
  };
  return { layer, isOpen: () => breaker.isOpen, assertClosed };
}

const BAD: ReadonlySet<Fault> = new Set(['refused', 'unconnected', 'broken', 'timeout', 'unavailable', 'failed']);

function signOf(error: unknown, { signal }: UpstreamCall): Sign {
  if (!(error instanceof GatewayError)) return 'nothing';
  const { fault } = error.particulars;
  // A call that was given up ends with the reason of whoever gave it up: only its time is news of the upstream.
  if (fault === 'not_sent' || (signal.aborted && fault !== 'timeout')) return 'nothing';
  return fault !== undefined && BAD.has(fault) ? 'bad' : 'good';
}

/** Calls of one stretch of being closed or open; what comes back from an earlier one is no news. */
interface Era {
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

  /** A pass, or the milliseconds until the next call is let through. */
  admit(now: number): Era | number {
    const era = this.#era;
    if (era.probeAt === undefined) return era;
    if (now < era.probeAt) return this.closedIn(now);
    era.probeAt = now + PROBE_MS; // from when it is sent: an upstream that hangs is not tried less often
    return era;
  }

  learn(sign: Sign, pass: Era, now: number): void {
    if (pass !== this.#era) return;
    if (pass.probeAt === undefined) this.#count(sign, pass, now);
    else if (sign === 'good') this.#become(closed());
    else if (sign === 'nothing') pass.probeAt = now;
  }

  #count(sign: Sign, { recent }: Era, now: number): void {
    if (sign === 'nothing') return;
    recent.call(now);
    if (sign === 'good') return;
    recent.mark(now);
    const { calls, marked } = recent.totals(now);
    if (calls >= LEAST_CALLS && marked * 2 >= calls) this.#become({ ...closed(), probeAt: now + PROBE_MS });
  }

  #become(era: Era): void {
    this.#era = era;
    this.#metrics.circuitIs(era.probeAt === undefined ? 'closed' : 'open');
  }
}

const closed = (): Era => ({ recent: new Recent(SPAN_MS), probeAt: undefined });
