import { readFileSync } from 'node:fs';
import { assignment } from './assignment.ts';

const EXPECTED: Readonly<Record<string, string>> = {
  ENOENT: 'a file that is there',
  EISDIR: 'a file, not a folder',
  EACCES: 'a file that this user may read',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'a file in UTF-8',
};

/** The code that the system, Node or OpenSSL has given an error, if it has one. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

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
    const code = codeOf(error) ?? 'unknown error';
    return { isMissing: code === 'ENOENT', expected: EXPECTED[code] ?? `a file that can be read (${code})` };
  }
}
