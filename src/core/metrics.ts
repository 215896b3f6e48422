import type { Reason } from './errors.ts';
import type { CallOutcome, PhaseName } from './timeline.ts';

/** Classes of statuses, for labels. */
export const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

/** How the cache answered a read; `collapsed`: the read joined a call under way. */
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

/** Counts of what is under way now, and their bounds. */
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
 * Where measurements go: prom-client on Node, nowhere on Workers. Labels have fixed sets of values, so no client can create a
 * new series. Durations are in milliseconds.
 */
export interface Metrics {
  /** Called before the first request, so that all series are there from the start. */
  expect(operations: readonly string[]): void;
  requestDone(labels: { operation: string; status: StatusClass; cache: string }, ms: number): void;
  /** `reason`: empty unless the call failed. */
  callDone(labels: { operation: string; outcome: CallOutcome; reason: Reason | '' }, ms: number): void;
  retried(operation: string): void;
  /** How long a request was in a phase. */
  phaseDone(phase: PhaseName, ms: number): void;
  /** A problem that a client got, also in an overview or a batch, by its code. */
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
