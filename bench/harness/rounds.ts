import { problem } from './problems.ts';
import type { Server } from './servers.ts';
import { cpuUs, residentMb } from './usage.ts';
import { headersOf, type Load, wrk } from './wrk.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface Contender {
  readonly name: string;
  readonly server: Server;
  readonly load: Load;
  /** Whether the answers are those that the workload is about; 200 is enough unless given. */
  readonly isRight?: (answer: Answer) => boolean;
}

/** How long a comparison takes. */
export interface Pace {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmSeconds: number;
}

interface Sample {
  readonly rate: number;
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly mb: number;
  readonly bad: number;
}

interface Comparison {
  readonly title: string;
  /** The first one is what the others are compared with. */
  readonly contenders: readonly Contender[];
  readonly pace: Pace;
}

const PROBE_MS = 5_000;

export const isHit = ({ status, headers }: Answer): boolean =>
  status === 200 && /\bhit\b/i.test(headers.get('cache-status') ?? '');

export const isComplete = ({ status, text }: Answer): boolean => status === 200 && text.includes('"complete":true');

/** What all rounds together say. */
class Compared {
  readonly #samples: ReadonlyMap<string, readonly Sample[]>;

  constructor(samples: ReadonlyMap<string, readonly Sample[]>) {
    this.#samples = samples;
  }

  all(name: string, figure: keyof Sample): readonly number[] {
    return (this.#samples.get(name) ?? []).map((sample) => sample[figure]);
  }

  median(name: string, figure: keyof Sample): number {
    return median(this.all(name, figure));
  }

  /** How much of what `limit` does `name` does with the same CPU. */
  share(name: string, limit: string): number {
    return this.median(limit, 'cpuUs') / this.median(name, 'cpuUs');
  }
}

/** Every contender once a round, so that what else the machine does meets all of them alike. Prints a table. */
export async function compare({ title, contenders, pace }: Comparison): Promise<void> {
  const samples = new Map<string, Sample[]>(contenders.map(({ name }) => [name, []]));
  for (const contender of contenders) await warm(contender, pace.warmSeconds);
  for (let round = 0; round < pace.rounds; round++)
    for (const contender of contenders) samples.get(contender.name)?.push(await measure(contender, pace.seconds));
  for (const contender of contenders) await check(contender);
  const compared = new Compared(samples);
  print(title, compared, contenders);
}

async function warm(contender: Contender, seconds: number): Promise<void> {
  const { server, load } = contender;
  await check({ ...contender, isRight: () => true }); // the first one fills the cache
  if (seconds > 0) await wrk({ url: server.url, load, seconds });
  await check(contender);
}

async function measure({ name, server, load }: Contender, seconds: number): Promise<Sample> {
  const before = cpuUs(server.pid);
  const { answers, us, p50Us, p99Us, badStatus, broken } = await wrk({ url: server.url, load, seconds });
  const bad = badStatus + broken;
  if (bad > 0) problem(`${name}, ${load.path}: ${badStatus} answers neither 2xx nor 3xx, ${broken} broken`);
  return {
    rate: answers / (us / 1e6),
    cpuUs: (cpuUs(server.pid) - before) / answers,
    p50Ms: p50Us / 1e3,
    p99Ms: p99Us / 1e3,
    mb: residentMb(server.pid),
    bad,
  };
}

/** wrk looks at the status only: what it asks for is asked for by hand too. */
async function check({ name, server, load, isRight = ({ status }) => status === 200 }: Contender): Promise<void> {
  const answer = await ask(server.url, load);
  if (!isRight(answer)) problem(`${name}, ${load.path}: not what was asked for, ${answer.status} ${answer.text}`);
}

/** One request of a load, by the first account. */
async function ask(url: string, load: Load): Promise<Answer> {
  const { path, method = 'GET', body } = load;
  const filled = Object.entries(headersOf(load)).map(([name, value]) => {
    return [name, value.replace('{account}', '0').replace('{key}', crypto.randomUUID())] as const;
  });
  const response = await fetch(url + path, {
    method,
    headers: Object.fromEntries(filled),
    ...(body !== undefined && { body }),
    signal: AbortSignal.timeout(PROBE_MS),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function print(title: string, compared: Compared, contenders: readonly Contender[]): void {
  const first = contenders[0]?.name ?? '';
  const rows = contenders.map(({ name }) => [
    name,
    span(compared.all(name, 'rate'), 0),
    span(compared.all(name, 'cpuUs'), 1),
    compared.share(name, first).toFixed(2),
    span(compared.all(name, 'p50Ms'), 2),
    span(compared.all(name, 'p99Ms'), 2),
    compared.median(name, 'mb').toFixed(0),
    String(compared.all(name, 'bad').reduce((sum, bad) => sum + bad, 0)),
  ]);
  table(['answers a second', 'CPU µs an answer', `CPU: of ${first}`, 'p50 ms', 'p99 ms', 'MB', 'bad'], title, rows);
}

/** Of all rounds the median, the least and the most. */
function span(values: readonly number[], digits: number): string {
  const all = [median(values), Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${all[0]} [${all[1]}–${all[2]}]`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** In Markdown; the first column's head is the title. */
export function table(columns: readonly string[], title: string, rows: readonly (readonly string[])[]): void {
  console.log(`\n| ${[title, ...columns].join(' | ')} |\n| --- |${' --- |'.repeat(columns.length)}`);
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
}
