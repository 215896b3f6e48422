type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

/** A scrape, read strictly. */
export interface Scraped {
  readonly families: ReadonlyMap<string, Family>;
  readonly samples: readonly Sample[];
  /** The sum of the samples of that name which have these labels; 0 without any. The family has to be there. */
  readonly value: (name: string, labels?: Labels) => number;
  /** Name and labels of each sample of ours. */
  readonly series: readonly string[];
  /** Of a part of a histogram too. */
  readonly familyOf: (name: string) => Family | undefined;
}

const LINE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (nan|[+-]?inf|[-+.e\d]+)$/i; // prom-client writes Nan
const LABEL = /([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const PARTS = /_(?:bucket|sum|count)$/;

/** @throws Error at what is not Prometheus' text format 0.0.4 */
export function exposition(text: string): Scraped {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, Family>();
  const help = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, about, name = '', words = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (about === 'HELP') help.set(name, words);
    else if (about === 'TYPE') families.set(name, { type: words, help: help.get(name) ?? '', samples: [] });
    else if (line !== '') {
      const sample = sampleOf(line);
      const family = [...families].at(-1); // samples follow their family's head
      if (!family || ![sample.name, sample.name.replace(PARTS, '')].includes(family[0])) throw new Error(line);
      family[1].samples.push(sample);
    }
  }
  const samples = [...families.values()].flatMap((family) => family.samples);
  const all = samples.map(seriesOf);
  if (new Set(all).size < all.length) throw new Error('a series is there twice');
  const familyOf = (name: string) => families.get(name) ?? families.get(name.replace(PARTS, ''));
  return {
    families,
    samples,
    familyOf,
    series: all.filter((series) => series.startsWith('portico_')),
    value: (name, labels = {}) => {
      if (!familyOf(name)) throw new Error(`${name} is not there`);
      const wanted = Object.entries(labels);
      return samples
        .filter((sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value))
        .reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function sampleOf(line: string): Sample {
  const [, name = '', labels = '', value = ''] = LINE.exec(line) ?? [];
  if (name === '') throw new Error(`not a sample: ${line}`);
  return { name, labels: labelsOf(labels), value: Number(value.replace('Inf', 'Infinity').replace('Nan', 'NaN')) };
}

function labelsOf(text: string): Labels {
  const found = [...text.matchAll(new RegExp(LABEL, 'gy'))];
  if (found.map(([whole]) => whole).join('') !== text) throw new Error(`not labels: ${text}`);
  return Object.fromEntries(found.map(([, name = '', value = '']) => [name, value]));
}

function seriesOf({ name, labels }: Sample): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${name}{${sorted.map(([label, value]) => `${label}="${value}"`).join(',')}}`;
}
