import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NODE_VARIABLES } from '../../src/entry/node/variables.ts';
import type { Rows } from './rows.ts';
import { linesOf, read, readAll } from './read.ts';

const files = globSync(join(import.meta.dirname, 'rows/*.ts'));
const modules = (await Promise.all(files.map((file) => import(file)))) as { readonly rows: readonly Rows[] }[];
const table = modules.flatMap(({ rows }) => rows);

const NO_TEXT = 'a text, not a list, null or a binding of another kind';

const fieldOf = (variable: string) =>
  variable.toLowerCase().replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const without = (kind: 'good' | 'bad') =>
  NODE_VARIABLES.filter((name) => !table.some((rows) => rows.variable === name && rows[kind].length > 0));

it('has rows of each variable that Node reads', () => {
  expect([without('good'), without('bad')]).toEqual([[], ['NO_PROXY']]); // which may be any text
});

describe.each(table)('$variable', ({ variable, beside, good, bad, meaning }) => {
  it.each(good)('takes %j', (value, means) => {
    const all = readAll({ ...beside, [variable]: value });
    const meant = meaning ? meaning(all) : (all as unknown as Record<string, unknown>)[fieldOf(variable)];
    expect(meant).toEqual(means);
  });

  it.each(bad)('does not take %j', (value, expected) => {
    expect(linesOf({ ...beside, [variable]: value })).toEqual([`${variable}: expected ${expected}`]);
  });

  it('is not set where it is empty', () => {
    expect(JSON.stringify(read({ ...beside, [variable]: '' }))).toBe(JSON.stringify(read({ ...beside })));
  });

  it.each([[[]], [null], [() => undefined], [new Map()]])('does not take %o, which is no text', (value) => {
    const lines = linesOf({ ...beside, [variable]: value });
    expect(lines).toEqual([`${variable}: expected ${variable.endsWith('_FILE') ? 'the path of a file' : NO_TEXT}`]);
  });
});
