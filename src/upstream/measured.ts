import { GatewayError } from '../core/errors.ts';
import type { CallOutcome, Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Layer, UpstreamCall } from './client.ts';

interface MeasuredOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** Counts calls and their time, for the request that caused them and for the operator. */
export function measured({ clock, metrics }: MeasuredOptions): Layer {
  let underWay = 0;
  metrics.watch('calls', () => underWay);
  return (next) => async (call) => {
    const begunAt = clock.now();
    underWay++;
    call.tally.upstreamCalls++;
    const done = (outcome: CallOutcome) => {
      const ms = clock.now() - begunAt;
      underWay--;
      call.tally.upstreamMs += ms;
      metrics.callDone({ operation: call.operation.id, outcome }, ms);
    };
    try {
      const answer = await next(call);
      done('good');
      return answer;
    } catch (error) {
      done(outcomeOf(error, call));
      throw error;
    }
  };
}

function outcomeOf(error: unknown, { signal }: UpstreamCall): CallOutcome {
  const { status, particulars } = error instanceof GatewayError ? error : NO_ANSWER;
  if (signal.aborted && particulars.fault !== 'timeout') return 'abandoned';
  return status < 500 ? 'refused' : 'failed';
}

const NO_ANSWER: Pick<GatewayError, 'status' | 'particulars'> = { status: 500, particulars: {} };
