import type { CachePolicy } from './operation.ts';

const MINUTE = 60;
const HOUR = 3600;

/** The rows of the table in `contract.md` section 5, in seconds. */
export const POLICIES = {
  /** Changes by the account's own doing, hardly ever otherwise. */
  settled: { fresh: 30, stale: 300, onError: HOUR },
  /** Records that the upstream adds on its own. */
  ledger: { fresh: 30, stale: 60, onError: HOUR },
  /** What a user waits to see. */
  news: { fresh: 10, stale: 60, onError: HOUR },
  /** Moves by the second. */
  live: { fresh: 10, stale: 30, onError: 10 * MINUTE },
} as const satisfies Record<string, CachePolicy>;
