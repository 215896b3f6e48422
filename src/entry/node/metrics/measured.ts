import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';

/** All that was measured, at one moment: plain data. In words of our own: types of the package name no other's. */
export type Measured = readonly MeasuredMetric[];

export type ReadMetrics = () => Promise<Measured>;

interface MeasuredMetric {
  readonly name: string;
  /** `counter`, `gauge` and so on. */
  readonly type: unknown;
  readonly values: readonly MeasuredValue[];
}

/** `metricName`: of a histogram, whose values have names of their own. */
interface MeasuredValue {
  readonly value: number;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  readonly metricName?: string;
}

/** Once for all gateways in the process: each time would start a timer and an observer that never end. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });

/** What counts of several processes, where prom-client takes their average or nothing: the latest loop, the first start. */
for (const metric of ofProcess.getMetricsAsArray()) {
  if (metric.aggregator === 'average') metric.aggregator = 'max';
  if (metric.aggregator === 'omit') metric.aggregator = 'min';
}

export const measureProcess: ReadMetrics = () => ofProcess.getMetricsAsJSON();

/** In Prometheus' format. */
export const CONTENT_TYPE: string = ofProcess.contentType;
export const scrapeProcess = (): Promise<string> => ofProcess.metrics();

const GROWING = new Set<unknown>(['counter', 'histogram', 'summary']);

/** Binary, so that sums of them are exact. */
const STEPS_A_SECOND = 2 ** 20;
const stepped = (value: number) => Math.round(value * STEPS_A_SECOND) / STEPS_A_SECOND;

/**
 * What grows, rounded, so that the order of adding changes nothing: Prometheus would take a sum that is less by the last
 * digit for a reset, and count all of it again.
 */
const rounded = (metric: MeasuredMetric): MeasuredMetric => {
  if (!GROWING.has(metric.type)) return metric;
  return { ...metric, values: metric.values.map((one) => ({ ...one, value: stepped(one.value) })) };
};

/** What several processes have measured, as one. */
export function added(all: readonly Measured[]) {
  const registry = AggregatorRegistry.aggregate(all.map((one) => one.map(rounded)));
  return {
    measured: (): Promise<Measured> => registry.getMetricsAsJSON(),
    scraped: async () => ({ contentType: CONTENT_TYPE, text: await registry.metrics() }),
  };
}

/** What only grows, as it was when a process ended. */
export const lastCounts = (measured: Measured): Measured => measured.filter(({ type }) => GROWING.has(type));
