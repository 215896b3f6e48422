import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { accountWordsIn } from './words.ts';

const ROOT = join(import.meta.dirname, '../..');

/** `npm start`, what looks at its configuration, and the worker that is deployed: they have the account API's tables. */
const WITH_TABLES = [
  'src/entry/node/doctor.ts',
  'src/entry/node/sandbox.ts',
  'src/entry/node/start.ts',
  'src/entry/worker.ts',
];

const IMPORT = /^import .+ from '(\.\.?\/)+proxy-account\/index\.ts';$/m;

const files = globSync('src/**/*.ts', { cwd: ROOT })
  .filter((file) => !file.startsWith('src/proxy-account/'))
  .toSorted();

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

test('nothing but its own folder names what the account API has', () => {
  const looked = files.filter((file) => !WITH_TABLES.includes(file));
  const found = looked.flatMap((file) => accountWordsIn(textOf(file)).map((word) => `${file}: ${word}`));
  expect(found).toEqual([]);
});

test('nothing but what is started has its tables', () => {
  expect(files.filter((file) => IMPORT.test(textOf(file)))).toEqual(WITH_TABLES);
});

test.each([
  ["at: 'GET /api/v2/badge/'", ['v2']],
  ['const payment_method = 1;', ['payment', 'payment_method']],
  ['isListOfSubUsers', []],
  ['// as subusers have', ['subuser']],
  ["table.operations.find(({ id }) => id === 'getApiKey')", ['getApiKey']],
  ['payment_required: kind(402)', []],
])('of `%s` it finds %j', (text, found) => {
  expect(accountWordsIn(text)).toEqual(found);
});
