import { parseEnv } from 'node:util';
import leven from 'leven';
import { type ConfigProblem, VARIABLES, type Variables } from '../../config.ts';
import { fileText, SECRET_FILES, SECRETS, withSecretFiles } from './files.ts';
import { SETTINGS } from './settings.ts';
import { type Role, role } from './workers/role.ts';

/** The names of all variables but OpenTelemetry's own. */
export const NODE_VARIABLES: readonly string[] = [...VARIABLES, ...SETTINGS, ...SECRET_FILES];

/** As it was before `.env` was read. */
export const environmentAtStart: NodeJS.ProcessEnv = { ...process.env };

/** `EX_CONFIG` of sysexits.h. */
export const BAD_CONFIG = 78;

/** Variables with the secrets that stand in files, and what is wrong with files. */
export interface GatheredVariables {
  readonly variables: Variables;
  readonly problems: readonly ConfigProblem[];
}

/**
 * The process's own variables are joined by those of `.env`, in the environment too, since the SDK of OpenTelemetry reads them
 * there; others are taken as they are. A worker has what its primary has read.
 */
export function gatherVariables(given: Variables): GatheredVariables {
  if ((given as object) !== process.env) return withSecretFiles(given);
  const { environment, problems } = role ? { environment: role.environment, problems: [] } : withDotEnv(process.env);
  if (problems.length > 0) refuse(problems);
  Object.assign(process.env, environment);
  return role ? { variables: { ...process.env, ...role.secrets }, problems } : withSecretFiles(given);
}

/** As at the start of the process, with `.env` and files read anew: what a worker is given. */
export function gatherAnew(): GatheredVariables & Pick<Role, 'environment' | 'secrets'> {
  const { environment, problems } = withDotEnv(environmentAtStart);
  const read = withSecretFiles(environment);
  const secrets = Object.fromEntries(SECRETS.map((name) => [name, read.variables[name]]));
  return {
    environment,
    secrets: secrets as Role['secrets'],
    variables: read.variables,
    problems: [...problems, ...read.problems],
  };
}

/** What is set and not empty stays. */
function withDotEnv(given: NodeJS.ProcessEnv) {
  const read = fileText('.env');
  const environment = { ...given } as Record<string, string>;
  if ('text' in read)
    for (const [name, value] of Object.entries(parseEnv(read.text))) environment[name] ||= value ?? '';
  const isBad = 'expected' in read && !read.isMissing;
  return { environment, problems: isBad ? [{ variable: '.env', expected: read.expected }] : [] };
}

/** A line for each, for an operator. */
export function sayProblems(problems: readonly ConfigProblem[]): void {
  for (const problem of problems) console.error(lineOf(problem));
}

/** Ends the process, and says what was expected. */
export function refuse(problems: readonly ConfigProblem[]): never {
  sayProblems(problems);
  return process.exit(BAD_CONFIG);
}

/** For an operator. */
export const lineOf = ({ variable, expected }: ConfigProblem): string => `${variable}: expected ${expected}`;

/** Variables that are none of ours but look like a slip of the pen for one. */
export function nearlyVariables(env: Readonly<Record<string, string | undefined>>) {
  const others = Object.keys(env).filter((name) => !NODE_VARIABLES.includes(name));
  return others.flatMap((variable) => {
    const meant = nearest(variable, NODE_VARIABLES);
    return meant === undefined ? [] : [{ variable, did_you_mean: meant }];
  });
}

/** The one of these names that looks most like it, if any does. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const near = known.filter((one) => isNearly(name, one));
  return near.toSorted((one, other) => leven(name, one) - leven(name, other))[0];
}

/** One letter in four may differ, as in `SECRET`; or words may be left out, as in `UPSTREAM_URL`. */
function isNearly(name: string, ours: string): boolean {
  if (leven(name, ours, { maxDistance: name.length }) <= name.length / 4 && name.length >= 6) return true;
  const words = name.split('_');
  return words.length > 1 && words.every((word) => ours.split('_').includes(word));
}
