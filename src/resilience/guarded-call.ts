import type { Abortable } from '../core/abortable.ts';
import type { Clock } from '../core/runtime.ts';
import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { during } from '../core/timeline.ts';
import type { Attempt, CallUpstream, Exchange, UpstreamCall } from '../upstream/call.ts';
import type { Gate, Outcome, Settled } from './gates.ts';
import { SlidingWindow } from './sliding-window.ts';

interface GuardedCallOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Asked in this order before each attempt; what they return is called in reverse order after it. */
  readonly gates: readonly Gate[];
  readonly exchange: Exchange;
  readonly random: () => number;
}

/**
 * Makes a call with all its attempts: through the gates, to the upstream, and again if that helps.
 */
export function guardedCall(options: GuardedCallOptions): CallUpstream {
  const { clock, gates, exchange } = options;
  const retry = retries(options);

  return async (call) => {
    let failure: unknown;
    for (let tries = 1; ; tries++) {
      const attempt: Attempt = { call, now: clock.now(), resends: tries - 1 };
      if (tries === 1) retry.count(attempt.now);
      const admitted: Settled[] = [];
      const settle = (outcome: Outcome) => {
        for (const settled of admitted.toReversed()) settled(attempt, outcome);
      };
      try {
        for (const gate of gates) {
          let settled = gate(attempt);
          if (settled instanceof Promise) {
            settled = await during(clock, call, 'slot', settled);
            attempt.now = clock.now();
          }
          if (settled) admitted.push(settled);
        }
        const answer = await exchange(attempt);
        settle({ answer, now: clock.now() });
        return answer;
      } catch (error) {
        const now = clock.now();
        settle({ error, now });
        // If a gate refused the retry, the error of the attempt before says more.
        if (tries > 1 && isNotSent(error)) throw failure;
        failure = error;
        const pauseMs = retry.pauseAfter(error, call, { tries, now });
        if (pauseMs === undefined) throw error;
        await during(clock, call, 'back-off', pause(clock, pauseMs, call.abortable));
      }
    }
  };
}

const isNotSent = (error: unknown) => error instanceof GatewayError && error.particulars.fault === 'not_sent';

/** Rejects with the reason once it is aborted. */
function pause(clock: Clock, ms: number, abortable: Abortable): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopTimer = clock.after(ms, () => {
      stay();
      resolve();
    });
    const stay = abortable.onAbort((reason) => {
      stopTimer();
      reject(reason);
    });
  });
}

const MAX_RETRIES = 2;
const FIRST_PAUSE_MS = 100;

/** Retries may be a tenth of the calls of the last ten seconds, but at least three. */
const BUDGET_MS = 10_000;
const BUDGET_SHARE = 0.1;
const BUDGET_LEAST = 3;

const RETRIED: ReadonlySet<Fault | undefined> = new Set<Fault>(['no_connection', 'broken', 'unavailable']);

/**
 * Decides whether a GET is tried again: if the upstream could not be reached or is unavailable, and within the request's
 * deadline. A budget keeps retries from tripling the load of an upstream in trouble. Pauses have full jitter. `random`:
 * from 0 to 1.
 */
function retries({ metrics, random }: Pick<GuardedCallOptions, 'metrics' | 'random'>) {
  const calls = new SlidingWindow(BUDGET_MS);
  const again = new SlidingWindow(BUDGET_MS);
  const isInBudget = (now: number) =>
    again.sum(now) < Math.max(BUDGET_LEAST, Math.floor(calls.sum(now) * BUDGET_SHARE));
  return {
    /** Counts a call; the budget is a share of these. */
    count: (now: number): void => calls.add(now),
    /**
     * Milliseconds to wait before the next attempt; undefined if there is to be none.
     * @param tries attempts so far
     */
    pauseAfter(error: unknown, call: UpstreamCall, { tries, now }: { tries: number; now: number }): number | undefined {
      const isRetried = error instanceof GatewayError && RETRIED.has(error.particulars.fault);
      if (!isRetried || call.operation.method !== 'GET' || call.abortable.isAborted) return undefined;
      const pauseMs = random() * FIRST_PAUSE_MS * 2 ** (tries - 1);
      if (tries > MAX_RETRIES || now + pauseMs >= call.endsAt || !isInBudget(now)) return undefined;
      again.add(now);
      metrics.retried(call.operation.id);
      return pauseMs;
    },
  };
}
