import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { pause } from '../core/pause.ts';
import type { Clock } from '../core/runtime.ts';
import type { Call, UpstreamCall } from '../upstream/client.ts';
import { Recent } from './recent.ts';

interface RetryOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** From 0 to 1. */
  readonly random?: () => number;
}

const MAX_RETRIES = 2;
const FIRST_PAUSE_MS = 100;

/** Retries may be a tenth of the calls of the last ten seconds, and three where there were few. */
const BUDGET_MS = 10_000;
const BUDGET_SHARE = 0.1;
const BUDGET_LEAST = 3;

const RETRIED: ReadonlySet<Fault | undefined> = new Set<Fault>(['refused', 'broken', 'unavailable']);

/**
 * Asks again for a GET where the upstream could not be reached or said that it cannot serve just now; with full jitter,
 * within the deadline, and within a budget, so that an upstream in trouble is not asked three times as much.
 */
export function retry({ clock, metrics, random = Math.random }: RetryOptions, attempt: Call): Call {
  const recent = new Recent(BUDGET_MS);

  const isInBudget = (): boolean => {
    const { calls, marked } = recent.totals(clock.now());
    return marked < Math.max(BUDGET_LEAST, Math.floor(calls * BUDGET_SHARE));
  };

  /** Waits for the next attempt; throws the failure where there is to be none. */
  const pauseAfter = async (failure: unknown, call: UpstreamCall, attempts: number): Promise<void> => {
    const pauseMs = random() * FIRST_PAUSE_MS * 2 ** (attempts - 1);
    const isWanted = !call.signal.aborted && clock.now() + pauseMs < call.endsAt;
    if (attempts > MAX_RETRIES || !isRetried(failure) || !isWanted || !isInBudget()) throw failure;
    recent.mark(clock.now());
    metrics.retried(call.operation.id);
    await pause(clock, pauseMs, call.signal);
  };

  return async (call) => {
    if (call.operation.method !== 'GET') return attempt(call);
    recent.call(clock.now());
    let failure: unknown;
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt(call);
      } catch (error) {
        // What kept another attempt back says less than what made one necessary.
        if (attempts > 1 && isNotSent(error)) throw failure;
        failure = error;
        await pauseAfter(failure, call, attempts);
      }
    }
  };
}

const isRetried = (error: unknown) => error instanceof GatewayError && RETRIED.has(error.particulars.fault);

const isNotSent = (error: unknown) => error instanceof GatewayError && error.particulars.fault === 'not_sent';
