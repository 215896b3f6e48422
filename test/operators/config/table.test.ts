import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { NODE_VARIABLES } from '../../../src/entry/node/variables.ts';
import { complaintsOf } from '../../support/program.ts';
import { LEAK_MARK } from '../../support/secrets.ts';
import { readAll, type Rows } from './rows.ts';

const files = globSync(join(import.meta.dirname, 'rows/*.ts'));
const modules = (await Promise.all(files.map((file) => import(file)))) as { readonly rows: readonly Rows[] }[];
const table = modules.flatMap(({ rows }) => rows);

const NO_TEXT = 'a text, not a list, null or a binding of another kind';

const fieldOf = (variable: string) =>
  variable.toLowerCase().replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const without = (kind: 'good' | 'bad') =>
  NODE_VARIABLES.filter((name) => !table.some((rows) => rows.variable === name && rows[kind].length > 0));

test('there are rows of each variable that Node reads', () => {
  expect([without('good'), without('bad')]).toEqual([[], []]);
});

const textOf = (file: string) => readFileSync(join(import.meta.dirname, '../../..', file), 'utf8');

test.each(['docs/configuration.md', '.env.example'])('%s has every variable', (file) => {
  expect(NODE_VARIABLES.filter((name) => !new RegExp(`\\b${name}\\b`).test(textOf(file)))).toEqual([]);
});

test.each(['docs/configuration.md', 'docs/contract.md'])('%s has the defaults', (file) => {
  for (const [, names = '', values = ''] of textOf(file).matchAll(/^\| (`(?!SANDBOX_PORT)[A-Z][^|]*) \| (`[^|]*) \|/gm))
    for (const [at, [name]] of Array.from(names.matchAll(/[A-Z_]+/g)).entries()) {
      const value = values.split(', ')[at]?.replaceAll('`', '') ?? '';
      expect([name, outcomeOf({ [name]: value })]).toEqual([name, outcomeOf({})]);
    }
});

/** A secret wherever a value may have one. */
const AROUND = [
  LEAK_MARK,
  `https://user:${LEAK_MARK}@x.example`,
  `https://x.example/?${LEAK_MARK}`,
  `{"getSubscription":{"fresh":"${LEAK_MARK}"}}`,
  `x,${LEAK_MARK}`,
  `redis://user:100%${LEAK_MARK}@store`,
  `redis://user:${LEAK_MARK}@store/${LEAK_MARK}`,
  `redis-sentinel://one/${LEAK_MARK}/x`,
  `redis://store?password=${LEAK_MARK}`,
];

/** What is read, or why not. */
function outcomeOf(env: Readonly<Record<string, string>>): string {
  try {
    return JSON.stringify(readAll(env));
  } catch (error) {
    return String(error);
  }
}

describe.each(table)('$variable', ({ variable, beside, good, bad, meaning }) => {
  it.each(good)('takes %j', (value, means) => {
    const all = readAll({ ...beside, [variable]: value });
    const meant = meaning ? meaning(all) : (all as unknown as Record<string, unknown>)[fieldOf(variable)];
    expect(meant).toEqual(means);
  });

  it('takes no other values, says what was expected of each, and never the value', async () => {
    for (const [value, expected] of bad)
      expect([value, await complaintsOf({ ...beside, [variable]: value })]).toEqual([
        value,
        [`${variable}: expected ${expected}`],
      ]);
    for (const value of [[], null, () => undefined, new Map()])
      expect(await complaintsOf({ ...beside, [variable]: value })).toEqual([
        `${variable}: expected ${variable.endsWith('_FILE') ? 'the path of a file' : NO_TEXT}`,
      ]);
    for (const value of AROUND)
      expect((await complaintsOf({ ...beside, [variable]: value })).join()).not.toContain(LEAK_MARK);
  });

  it('is not set where it is empty', () => {
    expect(outcomeOf({ ...beside, [variable]: '' })).toBe(outcomeOf({ ...beside }));
  });
});
