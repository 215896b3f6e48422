import { Circuit } from '../resilience/circuit.ts';
import { budget, cooldown, type Gate, inTime, measured, seenCodes } from '../resilience/gates.ts';
import { watchDrift } from '../resilience/drift.ts';
import { guardedCall } from '../resilience/guarded-call.ts';
import type { Caller } from '../resilience/recent.ts';
import { slots } from '../resilience/slots.ts';
import { upstreamClient } from '../upstream/client.ts';
import type { GatewayDeps } from './deps.ts';
import { endingSessions } from './sessions.ts';

/** The call of the upstream, with its retries and the gates before each attempt. */
export function upstreamCall(deps: GatewayDeps, accepted: Gate) {
  const { config, clock, metrics } = deps;
  const upstreamCodes = new Set<string>();
  const circuit = new Circuit(deps);
  const cooling = cooldown(deps);
  // In the order in which they are asked.
  const gates: readonly Gate[] = [
    cooling.assertOver,
    circuit.gate,
    slots(deps, deps.slots),
    cooling.gate, // again: a 429 may have come while the call waited for its slot
    inTime,
    budget(deps, config.upstreamBudgetPerMinute),
    accepted,
    endingSessions(deps.store),
    seenCodes(upstreamCodes),
    watchDrift(deps.logger),
    measured(metrics),
  ];
  const exchange = upstreamClient({ ...deps, maxBodyBytes: config.upstreamMaxBodyBytes });
  return {
    upstreamCodes: upstreamCodes as ReadonlySet<string>,
    call: guardedCall({ clock, metrics, gates, exchange, attemptTimeoutMs: config.upstreamTimeoutMs }),
    isCircuitOpen: (caller: Caller) => circuit.isOpen(caller),
    /**
     * Refuses calls that the cooldown or the circuit would refuse, for writes, which are stored before they are sent.
     * @throws GatewayError
     */
    assertAllowed: (caller: Caller): void => {
      const now = clock.now();
      cooling.assertOver({ call: caller, now });
      circuit.assertClosed(caller, now);
    },
  };
}
