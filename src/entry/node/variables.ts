import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import leven from 'leven';
import { type ConfigProblem, VARIABLES, type Variables } from '../../config.ts';
import { SETTINGS } from './settings.ts';

/** The names of all variables but OpenTelemetry's own. */
export const NODE_VARIABLES: readonly string[] = [...VARIABLES, ...SETTINGS];

/** As it was before `.env` was read. */
export const environmentAtStart: NodeJS.ProcessEnv = { ...process.env };

/** `EX_CONFIG` of sysexits.h. */
export const BAD_CONFIG = 78;

/** The process's own variables are joined by those of `.env`; others are taken as they are. */
export function withFile<V extends Variables>(variables: V): V {
  if ((variables as object) === process.env && existsSync('.env')) loadEnvFile('.env');
  return variables;
}

export function sayProblems(problems: readonly ConfigProblem[]): void {
  for (const { variable, expected } of problems) console.error(`${variable}: expected ${expected}`);
}

/** Ends the process, and says what was expected. */
export function refuse(problems: readonly ConfigProblem[]): never {
  sayProblems(problems);
  return process.exit(BAD_CONFIG);
}

/** Variables that are none of ours but look like a slip of the pen for one. */
export function nearlyVariables(env: Readonly<Record<string, string | undefined>>) {
  const others = Object.keys(env).filter((name) => !NODE_VARIABLES.includes(name));
  return others.flatMap((variable) => {
    const [meant] = NODE_VARIABLES.filter((ours) => isNearly(variable, ours)).toSorted(
      (one, other) => leven(variable, one) - leven(variable, other),
    );
    return meant === undefined ? [] : [{ variable, did_you_mean: meant }];
  });
}

/** One letter in four may differ, as in `SECRET`; or words may be left out, as in `UPSTREAM_URL`. */
function isNearly(name: string, ours: string): boolean {
  if (leven(name, ours, { maxDistance: name.length }) <= name.length / 4 && name.length >= 6) return true;
  const words = name.split('_');
  return words.length > 1 && words.every((word) => ours.split('_').includes(word));
}
