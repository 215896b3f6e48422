import { GatewayError } from '../core/errors.ts';
import type { CallOutcome, Metrics } from '../core/metrics.ts';
import type { Attempt, Gate, Outcome } from './gates.ts';

/** Counts attempts and their time, for the request that caused them and for the operator. The last gate. */
export function measured(metrics: Metrics): Gate {
  let underWay = 0;
  metrics.watch('calls', () => underWay);
  return {
    admit({ call }) {
      underWay++;
      call.tally.upstreamCalls++;
    },
    settled(attempt, outcome) {
      const { tally, operation } = attempt.call;
      const ms = outcome.now - attempt.now;
      underWay--;
      tally.upstreamMs += ms;
      metrics.callDone({ operation: operation.id, outcome: outcomeOf(attempt, outcome) }, ms);
    },
  };
}

function outcomeOf({ call, isGivenUp }: Attempt, { answer, error }: Outcome): CallOutcome {
  if (answer) return 'good';
  const { status, particulars } = error instanceof GatewayError ? error : NO_ANSWER;
  if ((isGivenUp || call.signal.aborted) && particulars.fault !== 'timeout') return 'abandoned';
  return status < 500 ? 'refused' : 'failed';
}

const NO_ANSWER: Pick<GatewayError, 'status' | 'particulars'> = { status: 500, particulars: {} };
