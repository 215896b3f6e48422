import type { Reason } from './errors.ts';
import type { CallOutcome, PhaseName } from './timeline.ts';

/** Statuses by class, as labels have them. */
export const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

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
export const REFUSALS = ['rate_limit', 'cooldown', 'circuit', 'slots', 'under_way', 'cut_off'] as const;

/** What is under way now, and how many there may be of what is bounded. */
export type Gauge =
  | 'reads'
  | 'calls'
  | 'calls_limit'
  | 'waiting_calls'
  | 'requests'
  | 'requests_limit'
  | 'connections'
  | 'connections_limit'
  | 'waits';

/**
 * Where measurements go: prom-client on Node, nowhere on Workers. Labels have values of fixed sets, so that no client can
 * create new series.
 */
export interface Metrics {
  /** Said before the first request, so that all series are there from the start. */
  expect(operations: readonly string[]): void;
  requestDone(labels: { operation: string; status: StatusClass; cache: string }, ms: number): void;
  /** `reason`: empty unless it failed. */
  callDone(labels: { operation: string; outcome: CallOutcome; reason: Reason | '' }, ms: number): void;
  retried(operation: string): void;
  /** Time of a request that went to a phase. */
  phaseDone(phase: PhaseName, ms: number): void;
  /** Code of a problem that a client got, also in an overview or a batch. */
  problem(code: string): void;
  /** A field of an answer that did not fit its schema. */
  drifted(operation: string): void;
  circuitIs(state: 'closed' | 'open'): void;
  /** One read through the cache. */
  readDone(outcome: (typeof READ_OUTCOMES)[number]): void;
  idempotency(outcome: IdempotencyOutcome): void;
  refused(by: (typeof REFUSALS)[number]): void;
  /** Sets the function that a gauge is read with when metrics are scraped. */
  watch(gauge: Gauge, read: () => number): void;
}

const nothing = () => undefined;

/** For a runtime without metrics. */
export const noMetrics: Metrics = {
  expect: nothing,
  phaseDone: nothing,
  problem: nothing,
  drifted: nothing,
  requestDone: nothing,
  callDone: nothing,
  retried: nothing,
  circuitIs: nothing,
  readDone: nothing,
  idempotency: nothing,
  refused: nothing,
  watch: nothing,
};
