import { readFileSync } from 'node:fs';

/** What was expected of a file that cannot be read, by the system's code. */
export const EXPECTED: Readonly<Record<string, string>> = {
  ENOENT: 'a file that is there',
  EISDIR: 'a file, not a folder',
  EACCES: 'a file that this user may read',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'a file in UTF-8',
};

/** A file's text without a byte order mark, or what was expected of the file. */
export function fileText(
  path: string,
): { readonly text: string } | { readonly isMissing: boolean; readonly expected: string } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { isMissing: code === 'ENOENT', expected: EXPECTED[code] ?? `a file that can be read (${code})` };
  }
}
