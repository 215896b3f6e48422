import { parseEnv } from 'node:util';
import { type ConfigProblem, VARIABLES, type Variables } from '../../config.ts';
import { assignment } from './assignment.ts';
import { fileText, SECRET_FILES, withSecretFiles } from './files.ts';
import { SETTINGS } from './settings.ts';

/** The names of all variables but OpenTelemetry's own. */
export const NODE_VARIABLES: readonly string[] = [...VARIABLES, ...SETTINGS, ...SECRET_FILES];

/** Where a program says what it has to. */
export interface Io {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** `EX_CONFIG` of sysexits.h. */
export const BAD_CONFIG = 78;

/** Variables with the secrets that stand in files, and what is wrong with files. */
export interface GatheredVariables {
  readonly variables: Variables;
  readonly problems: readonly ConfigProblem[];
}

/**
 * The process's own variables are joined by those of `.env`, in the environment too, since the SDK of OpenTelemetry reads them
 * there; others are taken as they are. A worker has those that the first process read at its start.
 */
export function gatherVariables(given: Variables, refuse = exitBadly): GatheredVariables {
  if ((given as object) !== process.env || assignment) return withSecretFiles(given);
  const read = fileText('.env');
  if ('expected' in read && !read.isMissing) refuse([{ variable: '.env', expected: read.expected }]);
  if ('text' in read)
    for (const [name, value] of Object.entries(parseEnv(read.text))) process.env[name] ||= value ?? ''; // what is set and not empty stays
  return withSecretFiles(given);
}

/** A line for each, for an operator. */
export const linesOf = (problems: readonly ConfigProblem[]): string =>
  problems.map((problem) => `${lineOf(problem)}\n`).join('');

export type Refuse = (problems: readonly ConfigProblem[]) => never;

/** Ends the process, and says what was expected. */
export const exitBadly: Refuse = (problems) => {
  process.stderr.write(linesOf(problems));
  return process.exit(BAD_CONFIG);
};

/** For an operator. */
export const lineOf = ({ variable, expected }: ConfigProblem): string => `${variable}: expected ${expected}`;
