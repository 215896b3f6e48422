/**
 * Instruments in Prometheus' text format. prom-client's own sort and look up the labels for each count, which takes five
 * times as long, and each request and call is counted several times.
 */
export interface Instrument {
  text(): string;
}

interface Options {
  readonly name: string;
  readonly help: string;
  /** Where something is counted, a key has their values, with a space between them: our own words, none has a blank. */
  readonly labels: readonly string[];
}

/** Read when metrics are scraped. */
const readAs =
  (type: string) =>
  (name: string, help: string, read: () => number): Instrument => ({
    text: () => textOf(type, { name, help }, [`${name} ${read()}`]),
  });

export const gauge = readAs('gauge');

/** Counted elsewhere. */
export const total = readAs('counter');

interface CounterOptions<Key extends string> extends Options {
  /** What is there from the start, since a series that begins with 1 has no rate. */
  readonly known: Readonly<Record<Key, 0>>;
}

export function counter<Key extends string>({ labels, known, ...named }: CounterOptions<Key>) {
  const counts = new Map<string, number>(Object.entries<number>(known));
  const sampleOf = ([key, count]: [string, number]) => `${named.name}{${labelsOf(labels, key)}} ${count}`;
  return {
    add: (key: Key): void => void counts.set(key, (counts.get(key) ?? 0) + 1),
    text: () => textOf('counter', named, Array.from(counts, sampleOf)),
  };
}

interface HistogramOptions extends Options {
  /** Seconds, ascending. */
  readonly bounds: readonly number[];
}

export function histogram({ labels, bounds, ...named }: HistogramOptions) {
  /** `counts` has an element for each bound and one for what is above them all. */
  const all = new Map<string, { readonly counts: number[]; sum: number }>();
  const begin = (key: string) => {
    const series = { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 };
    all.set(key, series);
    return series;
  };
  /** Buckets are cumulative: each also counts what is in those below it. */
  const samplesOf = (key: string, { counts, sum }: ReturnType<typeof begin>) => {
    const own = labelsOf(labels, key);
    let count = 0;
    const buckets = counts.map((more, place) => {
      count += more;
      return `${named.name}_bucket{le="${bounds[place] ?? '+Inf'}",${own}} ${count}`;
    });
    return [...buckets, `${named.name}_sum{${own}} ${sum}`, `${named.name}_count{${own}} ${count}`];
  };
  return {
    observe(key: string, seconds: number): void {
      const series = all.get(key) ?? begin(key);
      let bucket = 0;
      while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket++;
      series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
      series.sum += seconds;
    },
    text: () => textOf('histogram', named, Array.from(all, ([key, series]) => samplesOf(key, series)).flat()),
  };
}

const textOf = (type: string, { name, help }: Omit<Options, 'labels'>, samples: readonly string[]) =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples, ''].join('\n');

function labelsOf(labels: readonly string[], key: string): string {
  const values = key.split(' ');
  return labels.map((label, nth) => `${label}="${values[nth]}"`).join(',');
}
