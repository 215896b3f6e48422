import { collectDefaultMetrics, Registry } from 'prom-client';
import type { CallOutcome, Gauge, IdempotencyOutcome, Metrics, Refusal } from '../../../core/metrics.ts';
import type { Scrape } from '../../../routes/metrics.ts';
import { allOperations } from '../../../upstream/operations/index.ts';
import { counter, gauge, histogram, type Instrument } from './instruments.ts';

/** Once for all gateways in the process: each time would start a timer and an observer that never end. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });

/** The metrics of the gateway, of the process and what `others` measure, in Prometheus' format. */
export function promMetrics(others: readonly Instrument[]): Metrics & { readonly scrape: Scrape } {
  const own = instruments();
  const now: Record<Gauge, () => number> = { reads: () => 0, calls: () => 0, waiting_calls: () => 0 };
  let open = 0;
  const all: Instrument[] = [
    ...Object.values(own),
    gauge('portico_reads_under_way', 'Reads under way that equal reads join.', () => now.reads()),
    gauge('portico_upstream_calls_under_way', 'Calls of the upstream under way.', () => now.calls()),
    gauge('portico_upstream_calls_waiting', 'Calls that wait for a slot.', () => now.waiting_calls()),
    gauge(
      'portico_circuit_open',
      '1 while the circuit to the upstream is open, but for one account alone.',
      () => open,
    ),
    ...others,
  ];
  return {
    requestDone: ({ operation, status, cache }, ms) =>
      own.requests.observe(`${operation} ${status} ${cache}`, ms / 1000),
    callDone({ operation, outcome }, ms) {
      own.calls.add(`${operation} ${outcome}`);
      if (outcome !== 'abandoned') own.seconds.observe(operation, ms / 1000);
    },
    retried: (operation) => own.retries.add(operation),
    circuitIs(state) {
      open = state === 'open' ? 1 : 0;
    },
    readDone: (outcome) => own.reads.add(outcome),
    idempotency: (outcome) => own.writes.add(outcome),
    refused: (by) => own.refusals.add(by),
    authenticated: (by) => own.authenticated.add(by),
    watch(which, read) {
      now[which] = read;
    },
    scrape: async () => ({
      contentType: ofProcess.contentType,
      text: all.map((one) => one.text()).join('') + (await ofProcess.metrics()),
    }),
  };
}

const instruments = () => ({
  requests: histogram({
    name: 'portico_request_duration_seconds',
    help: 'From the head of a request to the end of its answer.',
    labels: ['operation', 'status', 'cache'],
    bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  }),
  seconds: histogram({
    name: 'portico_upstream_call_duration_seconds',
    help: 'From sending a call to the end of its answer, or its failure; not of calls that were abandoned.',
    labels: ['operation'],
    bounds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  }),
  calls: counter<string>({
    name: 'portico_upstream_calls_total',
    help: 'Calls of the upstream, by what became of them.',
    labels: ['operation', 'outcome'],
    known: zeros(allOperations.flatMap(({ id }) => OUTCOMES.map((outcome) => `${id} ${outcome}`))),
  }),
  retries: counter<string>({
    name: 'portico_upstream_retries_total',
    help: 'Calls that were made once more.',
    labels: ['operation'],
    known: zeros(allOperations.filter(({ method }) => method === 'GET').map(({ id }) => id)),
  }),
  reads: counter<Parameters<Metrics['readDone']>[0]>({
    name: 'portico_cache_reads_total',
    help: 'Reads, by how the cache came to an answer.',
    labels: ['outcome'],
    known: { hit: 0, stale: 0, miss: 0, bypass: 0, collapsed: 0 },
  }),
  writes: counter<IdempotencyOutcome>({
    name: 'portico_idempotency_total',
    help: 'Writes that must not happen twice, by what became of them.',
    labels: ['outcome'],
    known: { answered: 0, replayed: 0, released: 0, unknown: 0, key_reused: 0, in_progress: 0, outcome_unknown: 0 },
  }),
  authenticated: counter<'header' | 'cookie'>({
    name: 'portico_authenticated_requests_total',
    help: 'Requests of an account, by how they were authenticated. Only with SESSIONS.',
    labels: ['by'],
    known: { header: 0, cookie: 0 },
  }),
  refusals: counter<Refusal>({
    name: 'portico_refused_total',
    help: 'Requests and calls that the gateway itself turned away, by the reason.',
    labels: ['by'],
    known: { rate_limit: 0, cooldown: 0, circuit: 0, budget: 0, slots: 0, under_way: 0, unsent: 0 },
  }),
});

const OUTCOMES: readonly CallOutcome[] = ['good', 'refused', 'failed', 'abandoned'];

const zeros = (keys: readonly string[]) => Object.fromEntries(keys.map((key) => [key, 0 as const]));
