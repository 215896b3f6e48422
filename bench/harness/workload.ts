import type { Goal } from './report.ts';
import type { Answer, Pace } from './rounds.ts';

export interface Paces {
  /** Of comparisons that a goal hangs on. */
  readonly goal: Pace;
  readonly other: Pace;
  /** How often a process is started to see how long that takes. */
  readonly starts: number;
}

/** Starts what it compares and prints what it finds; whatever it has started is stopped behind it. */
export interface Workload {
  readonly name: string;
  run(paces: Paces): Promise<readonly Goal[]>;
}

export const QUICK: Paces = {
  goal: { rounds: 3, seconds: 1, warmSeconds: 1 },
  other: { rounds: 1, seconds: 1, warmSeconds: 1 },
  starts: 3,
};

export const FULL: Paces = {
  goal: { rounds: 5, seconds: 3, warmSeconds: 2 },
  other: { rounds: 3, seconds: 3, warmSeconds: 2 },
  starts: 9,
};

/** Of processes that have done much the same before. */
export const hot = (pace: Pace): Pace => ({ ...pace, warmSeconds: 0 });

export const READ = '/api/v2/subscription/';
export const OVERVIEW = '/bff/v1/account-overview';

/** Who take turns where one account alone would be too easy. */
export const MANY_ACCOUNTS = 1_000;

export const isHit = ({ status, headers }: Answer): boolean =>
  status === 200 && /\bhit\b/i.test(headers.get('cache-status') ?? '');

export const isComplete = ({ status, text }: Answer): boolean => status === 200 && text.includes('"complete":true');
