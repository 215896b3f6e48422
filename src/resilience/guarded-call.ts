import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { pause } from '../core/pause.ts';
import type { Clock } from '../core/runtime.ts';
import type { Call } from '../upstream/client.ts';
import type { Attempt, Gate, Outcome } from './gates.ts';
import { Retries } from './retry.ts';

interface GuardedCallOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Asked in this order before each attempt, and told of its outcome in the opposite one. */
  readonly gates: readonly Gate[];
  /** One request to the upstream and its answer. */
  readonly exchange: Call;
  readonly attemptTimeoutMs: number;
  readonly random?: () => number;
}

/**
 * A call with all its attempts: through the gates, to the upstream and back, and once more where that helps. One timer
 * spans connecting, waiting and reading of an attempt, since a body that drips would renew any timer on idleness.
 */
export function guardedCall({ clock, gates, exchange, attemptTimeoutMs, ...of }: GuardedCallOptions): Call {
  const retries = new Retries(of);

  return async (call) => {
    let failure: unknown;
    for (let tries = 1; ; tries++) {
      const attempt: Attempt = { call, now: clock.now(), era: undefined };
      if (tries === 1) retries.count(call, attempt.now);
      let admitted = 0;
      let stopTimer: (() => void) | undefined;
      const settle = (outcome: Outcome) => {
        stopTimer?.();
        while (admitted > 0) gates[--admitted]?.settled?.(attempt, outcome);
      };
      try {
        for (const gate of gates) {
          const waiting = gate.admit?.(attempt);
          admitted++; // also while it waits: whoever waits may be given what it has to give back
          if (!waiting) continue;
          await waiting;
          attempt.now = clock.now();
        }
        stopTimer = clock.after(Math.min(attemptTimeoutMs, call.endsAt - attempt.now), () =>
          call.cancellation.cancel(GatewayError.of('upstream_timeout', { fault: 'timeout' })),
        );
        const answer = await exchange(call);
        settle({ answer, now: clock.now() });
        return answer;
      } catch (error) {
        const now = clock.now();
        settle({ error, now });
        // What kept another attempt back says less than what made one necessary.
        if (tries > 1 && isNotSent(error)) throw failure;
        failure = error;
        const pauseMs = retries.pauseAfter(error, call, { tries, now });
        if (pauseMs === undefined) throw error;
        await pause(clock, pauseMs, call.cancellation);
      }
    }
  };
}

const isNotSent = (error: unknown) => error instanceof GatewayError && error.particulars.fault === 'not_sent';
