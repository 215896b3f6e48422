import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Which tests hold which sentence of `docs/contract.md`: a test quotes its words in `says('…')`. Fails where a sentence has
 * none, and where a quote is not there. `npm run sentences -- 5` shows one section, `-- 'some words'` the sentences that have
 * them, `-- --bare` only those without a test.
 */

/** As both are compared: one space between words, without `*` and backticks. */
export const plain = (text: string): string => text.replaceAll(/[*`]/g, '').replaceAll(/\s+/g, ' ');

/** What promises nothing by itself: it says what words mean, or what the page is. */
const NO_PROMISE = [
  /^What a client, an operator/,
  /^Where this page is silent/,
  /^upstream-api\.md says/,
  /^Nothing here prescribes/,
  /^Words: /,
  /^An (account|instance) is/,
  /^instances with one store are/,
  /^The gateway is/,
  /^A section is/,
];

interface Sentence {
  readonly section: string;
  readonly text: string;
}

/** Sentences, clauses between semicolons, and rows of tables, in order. */
export function sentencesOf(markdown: string): readonly Sentence[] {
  let section = '';
  const found: Sentence[] = [];
  const add = (text: string) => {
    const is = plain(text).trim();
    if (is !== '' && !NO_PROMISE.some((one) => one.test(is))) found.push({ section, text: is });
  };
  const withoutCode = markdown.replaceAll(/^```[\s\S]*?^```$/gm, '');
  for (const block of withoutCode.split(/\n(?=\||\* |#|\n)/)) {
    const heading = /^#+ (.*)/.exec(block.trim());
    if (heading) section = heading[1]!;
    const text = block
      .trim()
      .replace(/^#+ .*\n?/, '')
      .replace(/^\* /, '');
    if (!text.startsWith('|')) text.split(/(?<=[.;)])\s+(?=[A-Z`*(])|(?<=;)\s+/).forEach(add);
    else if (!/^\| (---|variable|code \||operations \||path \||call \|)/.test(text)) add(text);
  }
  return found;
}

interface Quote {
  readonly words: string;
  readonly file: string;
  readonly line: number;
  readonly isEverywhere: boolean;
}

export function quotesIn(folder: string): readonly Quote[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'));
  return files.flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8');
    return Array.from(text.matchAll(/\bsays\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g), ({ 2: quoted = '', index }) => ({
      words: plain(quoted.replaceAll(/\\(.)/g, '$1')).trim(),
      file,
      line: text.slice(0, index).split('\n').length,
      isEverywhere: /\beverywhere\([\s`'"{$]*$/.test(text.slice(Math.max(0, index - 40), index)),
    }));
  });
}

/** Whether it quotes the sentence, or the better part of it. */
function isOf({ at, words }: Quote & { readonly at: number }, start: number, end: number): boolean {
  const shared = Math.min(end, at + words.length) - Math.max(start, at);
  return at >= 0 && shared >= Math.min(words.length, (end - start) / 2) && shared > 0;
}

function main(): void {
  const root = join(import.meta.dirname, '..');
  const [wanted = ''] = process.argv.slice(2);
  const contract = plain(readFileSync(join(root, 'docs/contract.md'), 'utf8'));
  const quotes = quotesIn(join(root, 'test')).map((quote) => ({ ...quote, at: contract.indexOf(quote.words) }));
  let from = 0;
  let bare = 0;
  let count = 0;
  const lines: string[] = [];
  for (const { section, text } of sentencesOf(readFileSync(join(root, 'docs/contract.md'), 'utf8'))) {
    const at = contract.indexOf(text, from);
    from = at + 1;
    const end = at + text.length;
    const held = quotes.filter((quote) => isOf(quote, at, end));
    count++;
    if (held.length === 0) bare++;
    const isWanted = /^\d+$/.test(wanted) ? section.startsWith(`${wanted}.`) : text.includes(plain(wanted));
    if (wanted === '--bare' ? held.length > 0 : !isWanted) continue;
    const tests = held.map(
      ({ file, line, words, isEverywhere }) => `test/${file}:${line}${isEverywhere ? ' everywhere' : ''}: ${words}`,
    );
    lines.push([`[${section}] ${text}`, ...(held.length === 0 ? ['NO TEST'] : tests)].join('\n    '));
  }
  for (const { file, line, words } of quotes.filter(({ at }) => at < 0))
    process.stderr.write(`test/${file}:${line} quotes what docs/contract.md does not say: ${words}\n`);
  if (lines.length === 0 && wanted !== '--bare') process.stderr.write(`no section and no sentence has: ${wanted}\n`);
  process.stdout.write(`${lines.join('\n\n')}\n\n${count} sentences and rows, ${bare} without a test\n`);
  process.exitCode = bare === 0 && quotes.every(({ at }) => at >= 0) ? 0 : 1;
}

if (import.meta.main) main();
