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
  readonly labels: readonly string[];
}

/** Read when metrics are scraped. */
export const gauge = (name: string, help: string, read: () => number): Instrument => ({
  text: () => textOf('gauge', { name, help }, [`${name} ${read()}`]),
});

/** Counts. A key has the values of the labels in their order, which are our own words, with a space between them. */
export class Counter<Key extends string> implements Instrument {
  readonly #options: Options;
  readonly #counts: Map<string, number>;

  /** `known`: what is there from the start, since a series that begins with 1 has no rate. */
  constructor(options: Options & { readonly known: Readonly<Record<Key, 0>> }) {
    this.#options = options;
    this.#counts = new Map(Object.entries<number>(options.known));
  }

  add(key: Key): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  text(): string {
    const { name, labels } = this.#options;
    const samples = Array.from(this.#counts, ([key, count]) => `${name}{${labelsOf(labels, key)}} ${count}`);
    return textOf('counter', this.#options, samples);
  }
}

interface DurationsOptions extends Options {
  /** Seconds, ascending. */
  readonly bounds: readonly number[];
}

/** `counts` has an element for each bound and one for what is above them all. */
interface Series {
  readonly counts: number[];
  sum: number;
}

/** A histogram. */
export class Durations implements Instrument {
  readonly #options: DurationsOptions;
  readonly #series = new Map<string, Series>();

  constructor(options: DurationsOptions) {
    this.#options = options;
  }

  observe(key: string, seconds: number): void {
    const { bounds } = this.#options;
    const series = this.#series.get(key) ?? this.#begin(key);
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  text(): string {
    const samples = Array.from(this.#series, ([key, series]) => this.#samplesOf(key, series));
    return textOf('histogram', this.#options, samples.flat());
  }

  #begin(key: string): Series {
    const series = { counts: Array.from({ length: this.#options.bounds.length + 1 }, () => 0), sum: 0 };
    this.#series.set(key, series);
    return series;
  }

  /** Buckets are cumulative: each also counts what is in those below it. */
  #samplesOf(key: string, { counts, sum }: Series): string[] {
    const { name, bounds } = this.#options;
    const labels = labelsOf(this.#options.labels, key);
    let count = 0;
    const buckets = counts.map((own, place) => {
      count += own;
      return `${name}_bucket{le="${bounds[place] ?? '+Inf'}",${labels}} ${count}`;
    });
    return [...buckets, `${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${count}`];
  }
}

const textOf = (type: string, { name, help }: Pick<Options, 'name' | 'help'>, samples: readonly string[]) =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples, ''].join('\n');

function labelsOf(labels: readonly string[], key: string): string {
  const values = key.split(' ');
  return labels.map((label, nth) => `${label}="${values[nth]}"`).join(',');
}
