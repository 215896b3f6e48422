import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Recorder } from '../core/recorder.ts';
import type { Clock } from '../core/runtime.ts';
import type { Store } from '../store/port.ts';
import type { Whose } from '../upstream/call.ts';
import { Circuit } from './circuit.ts';
import { watchDrift } from './drift.ts';
import { cooldown, type Gate, inTime, measured } from './gates.ts';
import { watchReasons } from './reasons.ts';
import { slots } from './slots.ts';

interface GateListOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly recorder?: Pick<Recorder, 'watchCircuit'> | undefined;
  readonly store: Store;
  readonly slots: number | undefined;
  /** Told how attempts ended, besides the list's own. */
  readonly told: readonly Gate[];
}

/** What stands before each attempt at a call of the upstream, in one list. */
export function gateList(options: GateListOptions) {
  const { clock, metrics, logger, told } = options;
  const circuit = new Circuit(options);
  options.recorder?.watchCircuit(() => circuit.open);
  const cooling = cooldown(options);
  // In the order in which they are asked. Behind each: what it refuses.
  const gates: readonly Gate[] = [
    cooling.assertOver, // an account that the upstream's last 429 told to wait: rate_limited
    circuit.gate, // all while the circuit is open, since the upstream fails: upstream_unavailable
    slots(options, options.slots), // what has waited too long for a slot: overloaded
    cooling.gate, // as the first: a 429 may have come while the call waited for its slot; this one hears of a 429 of its own
    inTime, // what has no time left after that: upstream_timeout
    ...told, // nothing, as all that follow
    watchDrift(options),
    watchReasons(logger),
    measured(metrics), // the last, so that only what is sent is counted; told first, so that the others know the reason
  ];
  return {
    gates,
    isCircuitOpen: () => circuit.open !== undefined,
    /**
     * Refuses calls that the cooldown or the circuit would refuse, for writes, which are stored before they are sent.
     * @throws GatewayError
     */
    assertAllowed: (call: Whose): void => {
      const now = clock.now();
      cooling.assertOver({ call, now });
      circuit.assertClosed(call, now);
    },
  };
}
