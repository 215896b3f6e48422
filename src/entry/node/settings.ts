import { availableParallelism } from 'node:os';
import * as z from 'zod/mini';
import { type ConfigProblem, integerVariable, namesIn, readAs, readVariables, textsIn } from '../../config.ts';
import type { Variables } from '../../config.ts';

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
  if ('problems' in read || read.data.workers === 1 || given['STORE_URL'] !== undefined) return read;
  return { problems: [{ variable: 'STORE_URL', expected: `a store for ${read.data.workers} workers to share` }] };
}
