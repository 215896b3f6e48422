import { boundsOf } from '../support/bounds.ts';
import type { Fared } from './load.ts';

export const CACHE_MAX_BYTES = 16_777_216;
const BOUNDS = boundsOf(CACHE_MAX_BYTES);
export type Bounded = keyof typeof BOUNDS;
export const BOUNDED = Object.keys(BOUNDS) as Bounded[];

const MIN_GOOD = 0.999;
const MAX_P99 = 2;
/** Of records that may be evicted, in all. */
const RECORDS_MB = 64;
/** For a hundred thousand windows, holds, records and accounts. */
const SMALL_THINGS_MB = 100;
const MAX_RISE_MB = CACHE_MAX_BYTES / 1_048_576 + RECORDS_MB + SMALL_THINGS_MB;

/** How others fared for some time, and what that cost. */
export interface Stretch extends Fared {
  readonly seconds: number;
  /** Calls of the upstream beyond what was due. */
  readonly more: number;
  /** Of the gateway's process. */
  readonly cores: number;
}

/** What was seen of one attack. */
export interface Seen {
  readonly attack: string;
  readonly without: Stretch;
  readonly during: Stretch;
  readonly sent: number;
  /** What was answered to it. */
  readonly statuses: Readonly<Record<string, number>>;
  /** By the gateway itself, of all: how many for which reason. */
  readonly refused: Readonly<Record<string, number>>;
  readonly most: Readonly<Record<Bounded | 'rssMb', number>>;
  readonly heapMb: readonly [before: number, after: number];
}

/** Cells of two tables, and what is out of bounds. */
export interface Judged {
  readonly others: readonly string[];
  readonly memory: readonly string[];
  readonly broken: readonly string[];
}

export function judge(seen: Seen, p99FloorMs: number): Judged {
  const broken: string[] = [];
  const { attack, without, during } = seen;
  const check = (what: string, text: string, isWithin: boolean) => {
    if (!isWithin) broken.push(`${attack}: ${what}`);
    return isWithin ? text : `${text} **BROKEN**`;
  };
  const both = (figure: (stretch: Stretch) => string | number) => `${figure(without)} / ${figure(during)}`;
  const lost = (what: keyof Fared['lost']) => {
    const text = both((stretch) => stretch.lost[what]);
    return check(`${what} lost`, text, during.lost[what] === 0);
  };
  const p99 = both((stretch) => stretch.p99.toFixed(1));
  const more = both((stretch) => stretch.more);
  const [heapBefore, heapAfter] = seen.heapMb;
  const others = [
    attack,
    (seen.sent / during.seconds).toFixed(0),
    (during.cores - without.cores).toFixed(2),
    check('good answers', both(goodShare), during.good / during.many >= MIN_GOOD),
    both(({ p50 }) => p50.toFixed(1)),
    check('p99', p99, during.p99 <= Math.max(p99FloorMs, MAX_P99 * without.p99)),
    check('upstream calls', more, during.more <= Math.max(0, without.more)),
    lost('limits'),
    lost('copies'),
    lost('records'),
  ];
  const memory = [
    attack,
    tally(seen.statuses),
    tally(during.bad),
    tally(seen.refused),
    ...BOUNDED.map((name) => check(name, `${seen.most[name]}`, seen.most[name] <= BOUNDS[name])),
    seen.most.rssMb.toFixed(0),
    check('heap', `${heapBefore.toFixed(0)} → ${heapAfter.toFixed(0)}`, heapAfter - heapBefore <= MAX_RISE_MB),
  ];
  return { others, memory, broken };
}

const goodShare = ({ good, many }: Stretch) => `${((good / many) * 100).toFixed(2)} %`;

const tally = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts)
    .filter(([, many]) => many > 0)
    .map(([what, many]) => `${many} × ${what}`)
    .join(', ');

const OTHERS = [
  'attack',
  'sent a second',
  'cores it took',
  'good answers to others',
  'p50, ms',
  'p99, ms',
  'upstream calls too many',
  'limits lost',
  'copies lost',
  'records lost',
];

const MEMORY = [
  'attack',
  'answers to it',
  'not good to others',
  'turned away by the gateway',
  ...BOUNDED.map((name) => `${name}, at most ${BOUNDS[name]}`),
  'rss, MB',
  `heap and buffers after collection, MB, at most ${MAX_RISE_MB} more`,
];

export const lineOf = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;

const printTable = (rows: readonly (readonly string[])[]) => {
  const [head = [], ...rest] = rows;
  console.log([`\n${lineOf(head)}`, `|${' --- |'.repeat(head.length)}`, ...rest.map(lineOf)].join('\n'));
};

export function printHead(p99FloorMs: number): void {
  const bound = `p99 may be ${MAX_P99} times that without, or ${p99FloorMs} ms`;
  console.log(`In each cell without the attack / with it; good answers at least ${MIN_GOOD * 100} %, ${bound}.`);
  printTable([OTHERS]);
}

export const printMemory = (judged: readonly Judged[]): void =>
  printTable([MEMORY, ...judged.map(({ memory }) => memory)]);
