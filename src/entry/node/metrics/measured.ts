import { collectDefaultMetrics, Registry } from 'prom-client';

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

/** In Prometheus' format. */
export const CONTENT_TYPE: string = ofProcess.contentType;
export const scrapeProcess = (): Promise<string> => ofProcess.metrics();
