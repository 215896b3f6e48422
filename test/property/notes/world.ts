import type { Accounts } from '../../../src/store/accounts.ts';
import type { SealedNotes } from '../../../src/store/sealed.ts';
import type { Random } from '../random.ts';
import type { Judge } from './judge.ts';
import type { Rule } from './rules.ts';
import type { VirtualTime } from './time.ts';

/** The code that is tried: as it is, or with a rule taken out. */
export interface Tried {
  readonly Accounts: typeof Accounts;
  readonly SealedNotes: typeof SealedNotes;
}

/** What all parts of one schedule share. */
export interface World {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly judge: Judge;
  readonly tried: Tried;
  /** Rules that the simulation leaves out. */
  readonly without: ReadonlySet<Rule>;
  /** Milliseconds that a command, a reply or a call of the upstream is under way. */
  readonly delay: () => number;
  /** Of the reads that the upstream answers with a refusal of the account. */
  readonly refusing: number;
  /** No instance is killed or stands still, and nothing is refused, after that. */
  readonly faultsUntil: number;
  /** How long a copy may be used. */
  readonly copyMs: number;
}

/** Few, now and then many. */
export const usualDelay = (random: Random) => () => (random() < 0.02 ? random() * 1_500 : 2 + random() * 20);
