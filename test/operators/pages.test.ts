import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REASONS } from '../../src/core/errors.ts';
import { REFUSALS } from '../../src/core/metrics.ts';
import { CALL_OUTCOMES, PHASES } from '../../src/core/timeline.ts';

const textOf = (page: string) => readFileSync(`docs/${page}.md`, 'utf8');

/** The names in the first column of a table, or in a line of the text, that begins with these words. */
function namesAfter(page: string, words: string): readonly string[] {
  const [, from = ''] = textOf(page).split(words, 2);
  const [table = '', ...rows] = from.split('\n\n', 1)[0]!.split('\n');
  const cells = words.startsWith('|') ? rows.map((row) => row.split('|')[1]) : [/^[^.;|(]*/.exec(table)?.[0]];
  return cells.flatMap((cell = '') => Array.from(cell.matchAll(/`([\w-]+)`/g), ([, name = '']) => name));
}

test.each([
  ['trouble', '| `reason` | |', REASONS],
  ['trouble', '| phase |', PHASES],
  ['deploying', '`by`: ', REFUSALS],
  ['trouble', '`portico.outcome` (', CALL_OUTCOMES],
] as const)('docs/%s.md has after %s what the code has', (page, words, all) => {
  expect(namesAfter(page, words).toSorted()).toEqual([...all].toSorted());
});

const LOGGER = readFileSync('src/core/logger.ts', 'utf8');
const fieldsOf = (name: string) =>
  Array.from(
    LOGGER.split(`interface ${name} `)[1]!
      .split('\n}')[0]!
      .matchAll(/readonly (\w+)\??:/g),
    ([, field]) => field!,
  );

test('the fields of the log are those of the contract, and docs/trouble.md has all', () => {
  const [, told = ''] = /allow-list of fields: ([^]*?)`legs`/.exec(textOf('contract')) ?? [];
  const names = Array.from(told.matchAll(/`(\w+)`/g), ([, name = '']) => name);
  const ours = ['time', 'level', ...fieldsOf('RequestFields'), ...REASONS];
  expect([...names, 'legs'].toSorted()).toEqual(ours.toSorted());
  const missing = [...ours, ...fieldsOf('LogFields'), ...fieldsOf('LegFields')].filter(
    (name) => !new RegExp(`[\`"]${name}[\`"]`).test(textOf('trouble')),
  );
  expect(missing).toEqual([]);
});
