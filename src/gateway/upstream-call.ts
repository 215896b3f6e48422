import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import { bulkhead } from '../resilience/bulkhead.ts';
import { budget } from '../resilience/budget.ts';
import { circuit } from '../resilience/circuit.ts';
import { deadline } from '../resilience/deadline.ts';
import { cooldown } from '../resilience/cooldown.ts';
import { retry } from '../resilience/retry.ts';
import type { AccountId, Store } from '../store/store.ts';
import { type Call, layered, upstreamClient } from '../upstream/client.ts';
import { type DriftReport, watchDrift } from '../upstream/drift.ts';
import { measured } from '../upstream/measured.ts';
import type { Transport } from '../upstream/transport.ts';

export interface UpstreamCallOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The upstream's `{base_url}`. */
  readonly upstream: URL;
  /** One attempt. */
  readonly attemptTimeoutMs: number;
  /** Calls under way at once; undefined where the platform sees to it. */
  readonly slots: number | undefined;
  /** Calls of one account in a minute; 0: any number. */
  readonly budgetPerMinute: number;
  readonly maxBodyBytes: number;
  readonly onDrift: DriftReport;
}

interface GuardedCall {
  readonly call: Call;
  /** Whether the upstream is taken to be out of service. */
  readonly isOut: () => boolean;
  /**
   * Refuses what would not get through, for what has to be announced before it is called.
   * @throws GatewayError
   */
  readonly assertOpen: (account: AccountId | undefined) => void;
}

/** What stands round each call of the upstream: the order of the lines is the order of the layers, outermost first. */
export function upstreamCall(options: UpstreamCallOptions & { readonly store: Store }): GuardedCall {
  const breaker = circuit(options);
  const cooling = cooldown(options);
  const call = layered(
    [
      retry(options),
      cooling.layer,
      breaker.layer,
      bulkhead(options),
      cooling.layer, // again: a 429 may have come while the call waited for its slot
      budget({ ...options, perMinute: options.budgetPerMinute }),
      deadline({ ...options, timeoutMs: options.attemptTimeoutMs }),
      watchDrift(options.onDrift),
      measured(options),
    ],
    upstreamClient(options),
  );
  const assertOpen = (account: AccountId | undefined) => {
    cooling.assertOver(account);
    breaker.assertClosed();
  };
  return { call, isOut: breaker.isOpen, assertOpen };
}
