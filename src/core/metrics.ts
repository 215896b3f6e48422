/** Statuses by class, as labels have them. */
export type StatusClass = '2xx' | '3xx' | '4xx' | '5xx';

/** What became of one upstream call. */
export const CALL_OUTCOMES = ['good', 'refused', 'failed', 'abandoned'] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** How the cache came to an answer; `collapsed` where a read joined a call under way. */
export const READ_OUTCOMES = ['hit', 'stale', 'miss', 'bypass', 'collapsed'] as const;

/** What became of a write with an idempotency key, or of a purchase. */
export const IDEMPOTENCY_OUTCOMES = [
  'answered',
  'replayed',
  'released',
  'unknown',
  'key_reused',
  'in_progress',
  'outcome_unknown',
] as const;
export type IdempotencyOutcome = (typeof IDEMPOTENCY_OUTCOMES)[number];

/** Why a request or a call was turned away by the gateway itself. */
export const REFUSALS = ['rate_limit', 'cooldown', 'circuit', 'budget', 'slots', 'under_way', 'unsent'] as const;

/** What is under way now. */
export type Gauge = 'reads' | 'calls' | 'waiting_calls';

/**
 * Where measurements go: prom-client on Node, nowhere on Workers. Labels have values of fixed sets, so that no client can
 * create new series.
 */
export interface Metrics {
  requestDone(labels: { operation: string; status: StatusClass; cache: string }, ms: number): void;
  callDone(labels: { operation: string; outcome: CallOutcome }, ms: number): void;
  retried(operation: string): void;
  circuitIs(state: 'closed' | 'open'): void;
  /** One read through the cache. */
  readDone(outcome: (typeof READ_OUTCOMES)[number]): void;
  idempotency(outcome: IdempotencyOutcome): void;
  refused(by: (typeof REFUSALS)[number]): void;
  /** Counted only where there are sessions. */
  authenticated(by: 'header' | 'cookie'): void;
  /** Sets the function that a gauge is read with when metrics are scraped. */
  watch(gauge: Gauge, read: () => number): void;
}

const nothing = () => undefined;

/** For a runtime without metrics. */
export const noMetrics: Metrics = {
  requestDone: nothing,
  callDone: nothing,
  retried: nothing,
  circuitIs: nothing,
  readDone: nothing,
  idempotency: nothing,
  refused: nothing,
  authenticated: nothing,
  watch: nothing,
};
