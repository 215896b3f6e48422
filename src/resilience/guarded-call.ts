import { childOf, onAbort } from '../core/abort.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Call, Exchange } from '../upstream/call.ts';
import type { Attempt, Gate, Outcome, Settled } from './gates.ts';
import { Retries } from './retry.ts';

interface GuardedCallOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Asked in this order before each attempt; what they return is called in reverse order after it. */
  readonly gates: readonly Gate[];
  /** One request to the upstream and its answer. */
  readonly exchange: Exchange;
  readonly attemptTimeoutMs: number;
  readonly random?: (() => number) | undefined;
}

/**
 * Makes a call with all its attempts: through the gates, to the upstream, and again if that helps. One timer spans
 * connecting, waiting and reading of an attempt, since a body that drips would restart an idle timer again and again.
 */
export function guardedCall(options: GuardedCallOptions): Call {
  const { clock, gates, exchange, attemptTimeoutMs } = options;
  const retries = new Retries(options.metrics, options.random);

  return async (call) => {
    let failure: unknown;
    for (let tries = 1; ; tries++) {
      const attempt: Attempt = { call, now: clock.now(), controller: childOf(call.signal) };
      if (tries === 1) retries.count(call, attempt.now);
      const admitted: Settled[] = [];
      let stopTimer: (() => void) | undefined;
      const settle = (outcome: Outcome) => {
        stopTimer?.();
        for (const settled of admitted.toReversed()) settled(attempt, outcome);
      };
      try {
        for (const gate of gates) {
          let settled = gate(attempt);
          if (settled instanceof Promise) {
            settled = await settled;
            attempt.now = clock.now();
          }
          if (settled) admitted.push(settled);
        }
        stopTimer = clock.after(Math.min(attemptTimeoutMs, call.endsAt - attempt.now), () =>
          attempt.controller.abort(GatewayError.of('upstream_timeout', { fault: 'timeout' })),
        );
        const answer = await exchange(call, attempt.controller.signal);
        settle({ answer, now: clock.now() });
        return answer;
      } catch (error) {
        const now = clock.now();
        settle({ error, now });
        // If a gate refused the retry, the error of the attempt before says more.
        if (tries > 1 && isNotSent(error)) throw failure;
        failure = error;
        const pauseMs = attempt.controller.signal.aborted ? undefined : retries.pauseAfter(error, call, { tries, now });
        if (pauseMs === undefined) throw error;
        await pause(clock, pauseMs, call.signal);
      }
    }
  };
}

const isNotSent = (error: unknown) => error instanceof GatewayError && error.particulars.fault === 'not_sent';

/** Rejects with the signal's reason once it is aborted. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopTimer = clock.after(ms, () => {
      stay();
      resolve();
    });
    const stay = onAbort(signal, (reason) => {
      stopTimer();
      reject(reason);
    });
  });
}
