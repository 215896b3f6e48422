import { performance } from 'node:perf_hooks';
import type { Measured, ReadMetrics } from '../metrics/measured.ts';
import type { Shown } from './recorder.ts';

/** Counts that grow, by the label that the page tells apart. */
const COUNTS = {
  status: ['portico_requests_total', 'status'],
  seconds: ['portico_request_duration_seconds_bucket', 'le'],
  cache: ['portico_cache_reads_total', 'outcome'],
  store: ['portico_store_command_duration_seconds_bucket', 'le'],
  storeFailures: ['portico_store_command_failures_total', ''],
} as const;

const GAUGES = {
  slots: 'portico_upstream_calls_under_way',
  slotsLimit: 'portico_upstream_calls_limit',
  waiting: 'portico_upstream_calls_waiting',
  cacheBytes: 'portico_cache_bytes',
  cacheBytesLimit: 'portico_cache_bytes_limit',
  storeUsable: 'portico_store_usable',
  storePending: 'portico_store_pending_writes',
} as const;

/** Sums by the value of a label. */
type Sums = ReadonlyMap<string, number>;

/** All that is measured, at one moment. */
type Reading = ReadonlyMap<string, Measured[number]['values']>;

export type Figures = NonNullable<Awaited<ReturnType<Measuring['take']>>>;

/** What the page plots. It is read from metrics, and only while somebody looks, so that requests pay nothing for it. */
export class Measuring {
  readonly #read: ReadMetrics;
  readonly #shown: Shown;
  #before: { readonly at: number; readonly counts: Record<keyof typeof COUNTS, Sums> } | undefined;

  constructor(read: ReadMetrics, shown: Shown) {
    this.#read = read;
    this.#shown = shown;
  }

  start(): void {
    this.#shown.isWatched = true;
  }

  stop(): void {
    this.#shown.isWatched = false;
    this.#before = undefined;
  }

  /** Of the time since it was taken last: rates by second, times in milliseconds. Null the first time. */
  async take() {
    const reading = readingOf(await this.#read());
    const at = performance.now();
    const counts = mapped(COUNTS, ([name, label]) => sumsOf(reading, name, label));
    const gauges = mapped(GAUGES, (name) => reading.get(name)?.[0]?.value ?? null);
    const calls = this.#shown.takeCalls();
    const before = this.#before;
    this.#before = { at, counts };
    if (!before) return null;
    const seconds = Math.max(0.001, (at - before.at) / 1000);
    const grown = mapped(COUNTS, (_, name) => growthOf(counts[name], before.counts[name]));
    const rates = (sums: Sums) => Object.fromEntries(Array.from(sums, ([name, sum]) => [name, rounded(sum / seconds)]));
    return {
      status: rates(grown.status),
      requestMs: quantilesOf(grown.seconds),
      cache: rates(grown.cache),
      calls: Object.fromEntries(
        Array.from(calls, ([name, { count, ms }]) => [
          name,
          { rate: rounded(count / seconds), ms: rounded(ms / count) },
        ]),
      ),
      storeMs: quantilesOf(grown.store),
      storeFailures: rounded((grown.storeFailures.get('') ?? 0) / seconds),
      gauges,
      ...this.#shown.takeLoad(),
    };
  }
}

const rounded = (value: number) => Math.round(value * 100) / 100;

function mapped<T extends object, U>(of: T, make: (value: T[keyof T], name: keyof T) => U): Record<keyof T, U> {
  const entries = Object.entries(of) as [keyof T, T[keyof T]][];
  return Object.fromEntries(entries.map(([name, value]) => [name, make(value, name)])) as Record<keyof T, U>;
}

function readingOf(metrics: Measured): Reading {
  const all = metrics.flatMap(({ name, values }) =>
    values.map(({ metricName = name, value, labels }) => ({ name: metricName, value, labels })),
  );
  return Map.groupBy(all, ({ name }) => name);
}

function sumsOf(reading: Reading, name: string, label: string): Sums {
  const sums = new Map<string, number>();
  for (const { value, labels } of reading.get(name) ?? []) {
    const key = String(labels[label] ?? '');
    sums.set(key, (sums.get(key) ?? 0) + value);
  }
  return sums;
}

const growthOf = (now: Sums, before: Sums): Sums =>
  new Map(Array.from(now, ([name, sum]) => [name, sum - (before.get(name) ?? 0)]));

/** In milliseconds, from what the buckets of a histogram have grown by, in proportion within one; null where nothing was measured. */
function quantilesOf(buckets: Sums) {
  const bounds = Array.from(buckets, ([bound, count]) => ({ bound: boundOf(bound), count }));
  bounds.sort((a, b) => a.bound - b.bound);
  const all = bounds.at(-1)?.count ?? 0;
  if (all === 0) return null;
  const quantile = (share: number) => {
    const rank = share * all;
    const at = bounds.findIndex(({ count }) => count >= rank);
    const [from, to] = [bounds[at - 1] ?? { bound: 0, count: 0 }, bounds[at]];
    if (!to || to.bound === Infinity) return rounded(from.bound * 1000);
    const part = to.count === from.count ? 1 : (rank - from.count) / (to.count - from.count);
    return rounded((from.bound + (to.bound - from.bound) * part) * 1000);
  };
  return { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) };
}

const boundOf = (bound: string) => (bound === '+Inf' ? Infinity : Number(bound));
