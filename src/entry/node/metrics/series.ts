import { type Aggregator, Counter, Gauge, type Metric, type Registry } from 'prom-client';

/** None: each gateway registers its metrics with a registry of its own. */
export const registers: Registry[] = [];

/** Read when metrics are scraped. `aggregator` says what becomes of those of several processes. */
export function gauge(name: string, help: string, read: () => number, aggregator: Aggregator = 'sum'): Metric {
  const made: Gauge = new Gauge({ name, help, aggregator, registers, collect: () => made.set(read()) });
  return made;
}

/** As a gauge, for what only grows. */
export const counted = (name: string, help: string, read: () => number): Metric =>
  new Counter({
    name,
    help,
    registers,
    collect() {
      this.reset();
      this.inc(read());
    },
  });

type Labels = Readonly<Record<string, string>>;

/** Series of all values that labels may have are there from the start, since one that begins with 1 has no rate. */
export function counter(name: string, help: string, ...values: readonly Readonly<Record<string, readonly string[]>>[]) {
  const metric = new Counter<string>({ name, help, labelNames: Object.keys(values[0] ?? {}), registers });
  for (const each of values) {
    let series: Labels[] = [{}];
    for (const [label, all] of Object.entries(each))
      series = series.flatMap((labels) => all.map((value) => ({ ...labels, [label]: value })));
    for (const labels of series) metric.inc(labels, 0);
  }
  return metric;
}
