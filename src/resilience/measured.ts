import { GatewayError } from '../core/errors.ts';
import type { CallOutcome, Metrics } from '../core/metrics.ts';
import { type Attempt, type Gate, isGivenUp, type Outcome } from './gates.ts';

/** Counts attempts and measures them, for the request's log line and for metrics. Has to be the last gate. */
export function measured(metrics: Metrics): Gate {
  let underWay = 0;
  metrics.watch('calls', () => underWay);
  return {
    admit({ call }) {
      underWay++;
      call.context.upstreamCalls++;
    },
    settled(attempt, outcome) {
      const { context, operation } = attempt.call;
      const ms = outcome.now - attempt.now;
      underWay--;
      context.upstreamMs += ms;
      metrics.callDone({ operation: operation.id, outcome: outcomeOf(attempt, outcome) }, ms);
    },
  };
}

function outcomeOf(attempt: Attempt, { answer, error }: Outcome): CallOutcome {
  if (answer) return 'good';
  const known = error instanceof GatewayError ? error : undefined;
  if (isGivenUp(attempt, known)) return 'abandoned';
  return known && known.status < 500 ? 'refused' : 'failed';
}
