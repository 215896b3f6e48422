import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Accepted } from '../resilience/accepted.ts';
import { budget } from '../resilience/budget.ts';
import { callerOf, circuit } from '../resilience/circuit.ts';
import { cooldown } from '../resilience/cooldown.ts';
import type { Gate } from '../resilience/gates.ts';
import { guardedCall } from '../resilience/guarded-call.ts';
import { measured } from '../resilience/measured.ts';
import { slots } from '../resilience/slots.ts';
import type { Store } from '../store/store.ts';
import { type Call, type UpstreamCall, upstreamClient } from '../upstream/client.ts';
import { type DriftReport, watchDrift } from '../upstream/drift.ts';
import type { Transport } from '../upstream/transport.ts';

export interface UpstreamCallOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The upstream's `{base_url}`. */
  readonly upstream: URL;
  /** Of one attempt. */
  readonly attemptTimeoutMs: number;
  /** Calls under way at once; undefined if the platform limits them. */
  readonly slots: number | undefined;
  /** Calls of one account in a minute; 0: any number. */
  readonly budgetPerMinute: number;
  readonly maxBodyBytes: number;
  readonly accepted: Accepted;
  readonly seen: Gate;
  readonly onDrift: DriftReport;
}

interface GuardedCall {
  readonly call: Call;
  readonly isCircuitOpen: (caller: string) => boolean;
  /**
   * Refuses calls that the cooldown or the circuit would refuse, for writes, which are stored before they are sent.
   * @throws GatewayError
   */
  readonly assertOpen: (caller: Pick<UpstreamCall, 'account' | 'owner'>) => void;
}

/** The call of the upstream, with its retries and the gates before each attempt. */
export function upstreamCall(options: UpstreamCallOptions & { readonly store: Store }): GuardedCall {
  const { clock } = options;
  const breaker = circuit(options);
  const cooling = cooldown(options);
  // In the order in which they are asked.
  const gates: readonly Gate[] = [
    cooling,
    breaker,
    slots(options),
    { admit: cooling.admit }, // again: a 429 may have come while the call waited for its slot
    inTime,
    budget({ ...options, perMinute: options.budgetPerMinute }),
    options.accepted,
    options.seen,
    watchDrift(options.onDrift),
    measured(options.metrics),
  ];
  const call = guardedCall({ ...options, gates, exchange: upstreamClient(options) });

  const assertOpen = (caller: Pick<UpstreamCall, 'account' | 'owner'>) => {
    const now = clock.now();
    cooling.assertOver(caller.account, now);
    breaker.assertClosed(callerOf(caller), now);
  };
  return { call, isCircuitOpen: breaker.isOpen, assertOpen };
}

const inTime: Gate = {
  admit({ call, now }) {
    if (call.endsAt <= now) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  },
};
