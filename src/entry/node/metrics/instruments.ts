import { Gauge, Histogram, type Metric } from 'prom-client';
import { ERROR_CODES, REASONS } from '../../../core/errors.ts';
import { type Gauge as UnderWay, IDEMPOTENCY_OUTCOMES, READ_OUTCOMES, REFUSALS } from '../../../core/metrics.ts';
import { CALL_OUTCOMES, PHASES } from '../../../core/timeline.ts';
import { VERSION } from '../../../core/version.ts';
import { OF_UPSTREAM } from '../../../middleware/problem.ts';
import type { Table } from '../../../upstream/table.ts';
import { Counts, counter, registers } from './series.ts';

const idsOf = (operations: Table['operations']) => operations.map(({ id }) => id);

/** Each phase has its series from the start. */
function phases(): Histogram {
  const metric = new Histogram<string>({
    name: 'portico_phase_seconds',
    help: 'What the time of requests went to. Answers from the cache have no phases.',
    labelNames: ['phase'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  for (const phase of PHASES) metric.zero({ phase });
  return metric;
}

/** What is under way: names and words. */
export const UNDER_WAY: Readonly<Record<UnderWay, readonly [name: string, help: string]>> = {
  reads: ['reads_under_way', 'Reads under way that equal reads join.'],
  calls: ['upstream_calls_under_way', 'Calls of the upstream under way.'],
  calls_limit: ['upstream_calls_limit', 'How many calls of the upstream may be under way.'],
  waiting_calls: ['upstream_calls_waiting', 'Calls that wait for a slot.'],
  requests: ['requests_under_way', 'Requests under way.'],
  requests_limit: ['requests_limit', 'How many requests may be under way.'],
  connections: ['connections', 'Connections of clients.'],
  connections_limit: ['connections_limit', 'How many connections clients may have.'],
  waits: ['waiting_requests', 'Requests that wait for a change; they are not under way.'],
};

export function buildInfo(): Metric {
  const labels = { version: VERSION, node: process.version };
  const metric = new Gauge<string>({
    name: 'portico_build_info',
    help: 'Which version this is.',
    aggregator: 'first',
    labelNames: Object.keys(labels),
    registers,
  });
  metric.set(labels, 1);
  return metric;
}

export const instruments = ({ operations }: Table) => ({
  requests: new Histogram<string>({
    name: 'portico_request_duration_seconds',
    help: 'From the head of a request to the end of its answer.',
    labelNames: ['operation', 'status', 'cache'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  }),
  seconds: new Histogram<string>({
    name: 'portico_upstream_call_duration_seconds',
    help: 'From sending a call to the end of its answer, or its failure; not of calls that were abandoned.',
    labelNames: ['operation'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  }),
  calls: counter(
    'portico_upstream_calls_total',
    'Attempts at calls of the upstream, by what became of them, and why they failed.',
    { operation: idsOf(operations), outcome: CALL_OUTCOMES.filter((one) => one !== 'failed'), reason: [''] },
    { operation: idsOf(operations), outcome: ['failed'], reason: ['', ...REASONS] },
  ),
  problems: counter('portico_problems_total', 'Problems that clients got, also in overviews and batches.', {
    code: [...ERROR_CODES, OF_UPSTREAM],
  }),
  total: new Counts('portico_requests_total', 'Requests that were answered. Probes are not counted.', [
    'operation',
    'status',
  ]),
  phases: phases(),
  drift: counter('portico_drift_total', 'Fields of answers that did not fit their schemas.', {
    operation: idsOf(operations),
  }),
  retries: counter('portico_upstream_retries_total', 'Calls that were made once more.', {
    operation: idsOf(operations.filter(({ method }) => method === 'GET')),
  }),
  reads: counter('portico_cache_reads_total', 'Reads, by how the cache came to an answer.', { outcome: READ_OUTCOMES }),
  writes: counter('portico_idempotency_total', 'Writes that must not happen twice, by what became of them.', {
    outcome: IDEMPOTENCY_OUTCOMES,
  }),
  refusals: counter('portico_refused_total', 'Requests and calls that the gateway itself turned away, by the reason.', {
    by: REFUSALS,
  }),
});
