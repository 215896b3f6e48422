import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Accepted } from '../resilience/accepted.ts';
import { budget } from '../resilience/budget.ts';
import { callerOf, circuit } from '../resilience/circuit.ts';
import { cooldown } from '../resilience/cooldown.ts';
import type { Attempt, Gate, Outcome } from '../resilience/gates.ts';
import { measured } from '../resilience/measured.ts';
import { retry } from '../resilience/retry.ts';
import { slots } from '../resilience/slots.ts';
import type { Store } from '../store/store.ts';
import type { UpstreamAnswer } from '../upstream/answer.ts';
import { type Call, type UpstreamCall, upstreamClient } from '../upstream/client.ts';
import { type DriftReport, watchDrift } from '../upstream/drift.ts';
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
  readonly accepted: Accepted;
  readonly seen: Gate;
  readonly onDrift: DriftReport;
}

interface GuardedCall {
  readonly call: Call;
  /** Whether the upstream is taken to be out of service. */
  readonly isOut: (caller: string) => boolean;
  /**
   * Refuses what would not get through, for what has to be announced before it is called.
   * @throws GatewayError
   */
  readonly assertOpen: (caller: Pick<UpstreamCall, 'account' | 'owner'>) => void;
}

/** A call of the upstream, with all its attempts, and what stands before each of them. */
export function upstreamCall(options: UpstreamCallOptions & { readonly store: Store }): GuardedCall {
  const { clock } = options;
  const breaker = circuit(options);
  const cooling = cooldown(options);
  // In this order.
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
  const call = retry(options, attempts({ ...options, gates, exchange: upstreamClient(options) }));

  const assertOpen = (caller: Pick<UpstreamCall, 'account' | 'owner'>) => {
    const now = clock.now();
    cooling.assertOver(caller.account, now);
    breaker.assertClosed(callerOf(caller), now);
  };
  return { call, isOut: breaker.isOpen, assertOpen };
}

const inTime: Gate = {
  admit({ call, now }) {
    if (call.endsAt <= now) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  },
};

interface AttemptOptions {
  readonly clock: Clock;
  readonly gates: readonly Gate[];
  readonly exchange: Call;
  readonly attemptTimeoutMs: number;
}

/**
 * One attempt: through the gates, to the upstream and back. It ends after `attemptTimeoutMs`, or sooner when its request
 * has less left: one signal over connecting, waiting and reading, since a body that drips would renew any timer on
 * idleness.
 */
function attempts({ clock, gates, exchange, attemptTimeoutMs }: AttemptOptions): Call {
  return async (call) => {
    const one = new OneAttempt(call, clock.now());
    let admitted = 0;
    const settle = (outcome: Outcome) => {
      while (admitted > 0) gates[--admitted]?.settled?.(one, outcome);
    };
    try {
      for (const gate of gates) {
        const waiting = gate.admit?.(one);
        admitted++; // also while it waits: whoever waits may be given what it has to give back
        if (!waiting) continue;
        await waiting;
        one.now = clock.now();
      }
      const answer = await one.exchange(exchange, { clock, attemptTimeoutMs });
      settle({ answer, now: clock.now() });
      return answer;
    } catch (error) {
      settle({ error, now: clock.now() });
      throw error;
    }
  };
}

class OneAttempt implements Attempt {
  readonly call: UpstreamCall;
  now: number;
  isGivenUp = false;
  readonly #ends = new AbortController();

  constructor(call: UpstreamCall, now: number) {
    this.call = call;
    this.now = now;
  }

  giveUp(reason: GatewayError): void {
    this.isGivenUp = true;
    this.#ends.abort(reason);
  }

  async exchange(
    exchange: Call,
    { clock, attemptTimeoutMs }: Pick<AttemptOptions, 'clock' | 'attemptTimeoutMs'>,
  ): Promise<UpstreamAnswer> {
    const { signal: given, endsAt } = this.call;
    const { signal } = this.#ends;
    const leave = () => this.#ends.abort(given.reason);
    const expire = () => this.#ends.abort(GatewayError.of('upstream_timeout', { fault: 'timeout' }));
    const cancel = clock.after(Math.min(attemptTimeoutMs, endsAt - this.now), expire);
    if (given.aborted) leave();
    given.addEventListener('abort', leave, { once: true });
    try {
      return await exchange({ ...this.call, signal });
    } finally {
      cancel();
      given.removeEventListener('abort', leave);
    }
  }
}
