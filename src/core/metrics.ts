/** Classes of statuses: all that a label says of one. */
export type StatusClass = '2xx' | '3xx' | '4xx' | '5xx';

/** What became of one call of the upstream. */
export type CallOutcome = 'good' | 'refused' | 'failed' | 'abandoned';

type CircuitState = 'closed' | 'open';

/** What became of a write with an idempotency key, or of one that must not happen twice at once. */
export type IdempotencyOutcome =
  | 'answered'
  | 'replayed'
  | 'released'
  | 'unknown'
  | 'key_reused'
  | 'in_progress'
  | 'outcome_unknown';

/** Why a request or a call was turned away by the gateway itself. */
export type Refusal = 'rate_limit' | 'cooldown' | 'circuit' | 'budget' | 'slots' | 'event_loop';

/** What is under way now. */
export type Gauge = 'reads' | 'calls' | 'waiting_calls';

/**
 * Where measurements go: prom-client on Node, nowhere on Workers. `operation` and `cache` are names of ours, out of
 * fixed sets: no label is one that a client can make grow.
 */
export interface Metrics {
  requestDone(of: { operation: string; status: StatusClass; cache: string }, ms: number): void;
  callDone(of: { operation: string; outcome: CallOutcome }, ms: number): void;
  retried(operation: string): void;
  circuitIs(state: CircuitState): void;
  /** One read through the cache; `collapsed` where it joined a call under way. */
  readDone(outcome: 'hit' | 'stale' | 'miss' | 'bypass' | 'collapsed'): void;
  idempotency(outcome: IdempotencyOutcome): void;
  refused(by: Refusal): void;
  /** Reads a gauge whenever somebody looks. */
  watch(gauge: Gauge, read: () => number): void;
}

const nothing = () => undefined;

/** For a runtime that has no place for them. */
export const noMetrics: Metrics = {
  requestDone: nothing,
  callDone: nothing,
  retried: nothing,
  circuitIs: nothing,
  readDone: nothing,
  idempotency: nothing,
  refused: nothing,
  watch: nothing,
};
