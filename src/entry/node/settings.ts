import { availableParallelism } from 'node:os';
import * as z from 'zod/mini';
import {
  type ConfigProblem,
  integerVariable,
  namesIn,
  problemIf,
  readAs,
  readVariables,
  textsIn,
} from '../../config.ts';
import type { Variables } from '../../config.ts';
import { A_SECRET } from '../../core/secrets.ts';
import { expectedStoreAddress, storeAddressOf } from './redis/address.ts';

const MOST_WORKERS = 256;

const workers = readAs(`an integer from 1 to ${MOST_WORKERS}, or auto`, (text) => {
  const count =
    text === 'auto' ? Math.min(MOST_WORKERS, availableParallelism()) : /^\d+$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= MOST_WORKERS ? count : undefined;
});

/** What only a process is told, and a Worker is not. */
const variables = z.object({
  /** Processes on one port. */
  workers: z._default(workers, 1),
  /** That of the store that instances share. */
  storeUrl: z.optional(readAs(expectedStoreAddress, storeAddressOf)),
  shutdownDelayMs: integerVariable(0, 600_000, 0),
  /** For how long an idle connection of a client is kept. */
  keepAliveMs: integerVariable(1_000, 3_600_000, 65_000),
});

export type Settings = z.output<typeof variables>;

export const SETTINGS: readonly string[] = namesIn(variables);

/** Durations in milliseconds, as named in `contract.md` section 1. */
export function settingsIn(
  record: Variables,
): { readonly data: Settings } | { readonly problems: readonly ConfigProblem[] } {
  const given = textsIn(record);
  const read = readVariables(variables, given);
  const count = 'data' in read ? read.data.workers : 1;
  const problems = [...('problems' in read ? read.problems : []), ...conflictsIn(given, count)];
  return 'data' in read && problems.length === 0 ? read : { problems };
}

/** Problems that depend on two variables. */
function conflictsIn(given: Variables, processes: number): ConfigProblem[] {
  const lacks = (name: string) => given[name] === undefined;
  return [
    ...problemIf(processes > 1 && lacks('STORE_URL'), 'STORE_URL', `a store for ${processes} workers to share`),
    ...problemIf(!lacks('STORE_URL') && lacks('SECRETS'), 'SECRETS', `${A_SECRET}, since STORE_URL is set`),
  ];
}
