import { percentile } from '../support/client.ts';

/** Of the calls that it would be without a retry: one for a read, four for an overview. */
const MAX_CALLS_SHARE = 1.1;
const CALLS_OF_OVERVIEW = 4;

/** What is asked of the times. */
export interface Bounds {
  readonly p99Ms: number;
  readonly recoverySeconds: number;
}

export type What = 'read' | 'cold read' | 'overview';

export interface Answer {
  readonly what: What;
  readonly status: number;
  readonly at: number;
  readonly ms: number;
  readonly isStale: boolean;
}

/** What was seen while one upstream failed. */
export interface Seen {
  readonly answers: readonly Answer[];
  readonly beganAt: number;
  readonly failedAt: number;
  readonly openAt: number;
  readonly backAt: number;
  /** Seconds from then to the first one in which all was well. */
  readonly recoveredAfter: number;
  /** Counted by the gateway, except those that the upstream has received. */
  readonly calls: {
    readonly normal: number;
    readonly untilOpen: number;
    readonly all: number;
    readonly reads: number;
    readonly overviews: number;
    readonly received: number;
  };
  /** Turned away by the gateway during the outage. */
  readonly refused: readonly (readonly [by: string, many: number])[];
  readonly badProbes: readonly string[];
  readonly probes: number;
}

/** Prints the rows of a table, and gives back what is out of bounds. */
export function report(seen: Seen, bounds: Bounds): readonly string[] {
  const { answers, beganAt, failedAt, openAt, backAt, recoveredAfter, calls, refused, badProbes, probes } = seen;
  const broken: string[] = [];
  const check = (what: string, isWithin: boolean) => {
    if (!isWithin) broken.push(what);
    return isWithin ? '' : ' **BROKEN**';
  };
  const between = (from: number, to: number) => answers.filter(({ at }) => at >= from && at < to);
  const during = between(failedAt, backAt);
  const whenOpen = between(openAt, backAt);
  const [perRead, perOverview] = [
    calls.reads / during.filter(isRead).length,
    calls.overviews / during.filter(isOverview).length,
  ];
  const areCallsFew = perRead <= MAX_CALLS_SHARE && perOverview <= CALLS_OF_OVERVIEW * MAX_CALLS_SHARE;
  const [all, overviews] = [timesOf(whenOpen), timesOf(whenOpen.filter(isOverview))];
  const perRequest = (many: number, from: number, to: number) => (many / between(from, to).length).toFixed(2);
  const rows = [
    [
      'circuit open after',
      `${((openAt - failedAt) / 1_000).toFixed(1)} s${check('the circuit did not open', openAt < backAt)}`,
    ],
    [
      'upstream calls during the outage',
      `${perRead.toFixed(2)} a read, ${perOverview.toFixed(2)} an overview${check('upstream calls', areCallsFew)}`,
    ],
    [
      'upstream calls a request',
      `normally ${perRequest(calls.normal, beganAt, failedAt)}, until the circuit was open ` +
        `${perRequest(calls.untilOpen, failedAt, openAt)}, during the outage ${perRequest(calls.all, failedAt, backAt)}`,
    ],
    ['upstream calls sent and received', `${calls.all} counted by the gateway, ${calls.received} by the upstream`],
    ['turned away by the gateway', refused.map(([by, many]) => `${by} ${many}`).join(', ')],
    ['reads of accounts that have a copy', tally(during, 'read')],
    ['reads of accounts that have none', tally(during, 'cold read')],
    ['overviews', tally(during, 'overview')],
    [
      'p50 and p99 once open',
      `${all.text}, overviews alone ${overviews.text}${check('p99 once open', all.p99 < bounds.p99Ms)}`,
    ],
    [
      '/livez and /readyz on both listeners',
      `${probes - badProbes.length} of ${probes} were 200${check(`probes (${badProbes[0]})`, badProbes.length === 0)}`,
    ],
    [
      'all 200 and fresh again',
      `${recoveredAfter} s after it was back${check('recovery', recoveredAfter <= bounds.recoverySeconds)}`,
    ],
  ];
  for (const [what, value] of rows) console.log(`| ${what} | ${value} |`);
  return broken;
}

const isOverview = ({ what }: Answer) => what === 'overview';
const isRead = (answer: Answer) => !isOverview(answer);

function timesOf(answers: readonly Answer[]): { readonly p99: number; readonly text: string } {
  const ms = answers.map((answer) => answer.ms);
  const p99 = percentile(ms, 0.99);
  return { p99, text: `${percentile(ms, 0.5).toFixed(1)} and ${p99.toFixed(1)} ms of ${ms.length}` };
}

/** The first second since then with at least so many answers, all of them 200 and fresh. */
export function goodSecond(
  answers: readonly Answer[],
  { since, least }: { readonly since: number; readonly least: number },
): number | undefined {
  const seconds = Map.groupBy(
    answers.filter(({ at }) => at >= since),
    ({ at }) => Math.floor((at - since) / 1_000),
  );
  const isGood = (all: readonly Answer[]) =>
    all.length >= least && all.every(({ status, isStale }) => status === 200 && !isStale);
  const good = [...seconds].filter(([, all]) => isGood(all)).map(([second]) => second);
  return good.length > 0 ? Math.min(...good) : undefined;
}

function tally(answers: readonly Answer[], what: What): string {
  const some = answers.filter((answer) => answer.what === what);
  const stale = some.filter(({ status, isStale }) => status === 200 && isStale).length;
  const fresh = some.filter(({ status, isStale }) => status === 200 && !isStale).length;
  const failed = Object.entries(
    Object.groupBy(
      some.filter(({ status }) => status !== 200),
      ({ status }) => status,
    ),
  );
  const share = (many: number) => `${((many / some.length) * 100).toFixed(1)} %`;
  const rest = failed.map(([status, all]) => `, ${status}: ${share(all?.length ?? 0)}`).join('');
  return `of ${some.length}: ${share(stale)} stale, ${share(fresh)} fresh${rest}`;
}
