import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plain } from '../../scripts/sentences.ts';

const contract = plain(readFileSync(join(import.meta.dirname, '../../docs/contract.md'), 'utf8'));

/**
 * Words of `docs/contract.md` that a test holds, for its name; `npm run sentences` lists the tests of each sentence.
 * @throws Error where the words are not there, or stand there twice
 */
export function says(words: string): string {
  const parts = contract.split(plain(words)).length - 1;
  if (parts === 0) throw new Error(`docs/contract.md does not have these words, see \`npm run sentences\`: ${words}`);
  if (parts > 1)
    throw new Error(`docs/contract.md has these words ${parts} times, quote more of the sentence: ${words}`);
  return words;
}
