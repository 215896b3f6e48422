import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

interface Named {
  readonly name: string;
  readonly help: string;
}

/** A gauge that is read when metrics are scraped. */
export function gauge(registry: Registry, { read, ...named }: Named & { readonly read: () => number }): void {
  const made: Gauge = new Gauge({ ...named, registers: [registry], collect: () => made.set(read()) });
}

interface Counts<Value extends string> extends Named {
  readonly label: string;
  /** An object, so that the compiler reports a missing value. */
  readonly values: Readonly<Record<Value, 0>>;
}

/** Counts by one label. All its values are there from the start: a series that begins with 1 has no rate. */
export function counter<Value extends string>(
  registry: Registry,
  { label, values, ...named }: Counts<Value>,
): (value: Value) => void {
  const counts = new Map<string, number>(Object.keys(values).map((value) => [value, 0]));
  // Counted here, since prom-client looks up the label for each increment, and a request makes several.
  const made: Counter = new Counter({
    ...named,
    labelNames: [label],
    registers: [registry],
    collect() {
      made.reset();
      for (const [value, count] of counts) made.inc({ [label]: value }, count);
    },
  });
  return (value) => void counts.set(value, (counts.get(value) ?? 0) + 1);
}

let process: Registry | undefined;

/** Of the process, and so once for all gateways in it: each time would start a timer and an observer that never end. */
export function processRegistry(): Registry {
  if (process) return process;
  process = new Registry();
  collectDefaultMetrics({ register: process });
  return process;
}
