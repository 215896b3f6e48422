import { readFileSync } from 'node:fs';
import type { ConfigProblem, Variables } from '../../config.ts';
import { assignment } from './assignment.ts';

const EXPECTED: Readonly<Record<string, string>> = {
  ENOENT: 'a file that is there',
  EISDIR: 'a file, not a folder',
  EACCES: 'a file that this user may read',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'a file in UTF-8',
};

/** Texts by path: configuration is read once, and workers may be started later. */
export const filesRead: Record<string, string> = {};

/** A file's text without a byte order mark, or what was expected of the file. */
export function fileText(
  path: string,
): { readonly text: string } | { readonly isMissing: boolean; readonly expected: string } {
  const told = assignment?.files[path];
  if (told !== undefined) return { text: told };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    filesRead[path] = text;
    return { text };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { isMissing: code === 'ENOENT', expected: EXPECTED[code] ?? `a file that can be read (${code})` };
  }
}

/** Variables that hold a secret, and what stands in for one whose file is bad: so nothing else is said to be wrong with it. */
const STAND_INS = {
  SECRETS: '0123456789abcdef'.repeat(2),
  STORE_URL: 'redis://store.invalid',
} as const;

/** Variables that may be read from files. */
const SECRETS: readonly string[] = Object.keys(STAND_INS);

const fileOf = (name: string) => `${name}_FILE`;

/** The names of variables that name the file in which a secret is. */
export const SECRET_FILES: readonly string[] = SECRETS.map(fileOf);

/** The variables with the texts of files in the place of the files' names, and which of these are bad. */
export function withSecretFiles(given: Variables): {
  readonly variables: Variables;
  readonly problems: readonly ConfigProblem[];
} {
  const variables: Record<string, unknown> = { ...given };
  const problems: ConfigProblem[] = [];
  for (const [name, standIn] of Object.entries(STAND_INS)) {
    const [variable, path] = [fileOf(name), given[fileOf(name)]];
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
