import { parseEnv } from 'node:util';
import { type ConfigProblem, VARIABLES, type Variables } from '../../config.ts';
import { assignment } from './assignment.ts';
import { codeOf, fileText } from './files.ts';
import { SETTINGS } from './settings.ts';

/** Variables that hold a secret, and what stands in for one whose file is bad: so nothing else is said to be wrong with it. */
const STAND_INS = { SECRETS: '0123456789abcdef'.repeat(2), STORE_URL: 'redis://store.invalid' };

/** The name of the variable that names the file in which a secret is. */
const fileOf = (name: string) => `${name}_FILE`;

/** The names of all variables but OpenTelemetry's own. */
export const NODE_VARIABLES: readonly string[] = [...VARIABLES, ...SETTINGS, ...Object.keys(STAND_INS).map(fileOf)];

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
export function gatherVariables(given: Variables): GatheredVariables {
  const problems: ConfigProblem[] = [];
  if ((given as object) === process.env && !assignment) {
    const read = fileText('.env');
    if ('expected' in read && !read.isMissing) problems.push({ variable: '.env', expected: read.expected });
    if ('text' in read)
      for (const [name, value] of Object.entries(parseEnv(read.text))) process.env[name] ||= value ?? ''; // what is set and not empty stays
  }
  const variables: Record<string, unknown> = { ...given };
  for (const [name, standIn] of Object.entries(STAND_INS)) {
    const variable = fileOf(name);
    const path = given[variable];
    if (path === undefined || path === '') continue;
    const read = given[name] ? { expected: `nothing, since ${name} is set too` } : secretAt(path);
    if ('expected' in read) problems.push({ variable, expected: read.expected });
    variables[name] = 'text' in read ? read.text : given[name] || standIn;
  }
  return { variables, problems };
}

function secretAt(path: unknown): { readonly text: string } | { readonly expected: string } {
  if (typeof path !== 'string') return { expected: 'the path of a file' };
  const read = fileText(path);
  if ('expected' in read) return read;
  const text = read.text.replace(/[\r\n]+$/, '');
  return text === '' ? { expected: 'a file that is not empty' } : { text };
}

/** What is wrong, a line for each problem. */
export const linesOf = (problems: readonly ConfigProblem[]): string =>
  problems.map((problem) => `${lineOf(problem)}\n`).join('');

/** Says what was expected, and ends the process. */
export function exitBadly(problems: readonly ConfigProblem[]): never {
  process.stderr.write(linesOf(problems));
  return process.exit(BAD_CONFIG);
}

export const lineOf = ({ variable, expected }: ConfigProblem): string => `${variable}: expected ${expected}`;

const NO_SUCH_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL', 'EINVAL']);

/**
 * Resolves when `listening` does; where that cannot listen the process ends. `PORT` and `HOST` belong together, as do
 * `ADMIN_PORT` and `ADMIN_HOST`.
 */
export async function orExit<T>(
  portVariable: string,
  { host, port }: { readonly host: string; readonly port: number },
  listening: Promise<T>,
): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    const reason = codeOf(error) ?? 'unknown error';
    const isBadHost = NO_SUCH_HOST.has(reason);
    const words = reason === 'EADDRINUSE' ? 'it is already in use' : reason;
    if (isBadHost) console.error(`${portVariable.replace('PORT', 'HOST')}: expected a name or address of this machine`);
    else console.error(`${portVariable}: cannot listen on ${host}:${port}: ${words}`);
    return process.exit(isBadHost ? BAD_CONFIG : 1);
  }
}
