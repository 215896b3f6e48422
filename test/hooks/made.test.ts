import { expect, test } from 'vitest';
import { portico, type Runtime } from '../../src/portico.ts';
import type { Hooks } from '../../src/upstream/hooks.ts';
import { operations } from '../support/account-api.ts';

class Opened extends Error {}

/** Nothing is opened for a gateway that cannot be. */
const runtime: Runtime = {
  variables: {},
  open: () => {
    throw new Opened();
  },
  refuse: () => {
    throw new Error('refused');
  },
};

const making = (hooks: unknown) => () => portico({ runtime, rows: operations, ...(hooks as Hooks) });

const WRONG: readonly (readonly [hooks: unknown, words: string])[] = [
  [{ onProblem: {} }, '`onProblem` is not a function'],
  [{ credential: 'Basic' }, "`credential` is neither 'Token', 'Bearer', `{ header: <name> }` nor a function"],
  [{ credential: null }, '`credential` is neither'],
  [{ credential: {} }, '`credential` is neither'],
  [{ credential: { header: 'a b' } }, '`credential` names a header that cannot be sent'],
  [{ credential: { header: 'Cookie' } }, "`credential` sets `cookie`, which is the gateway's"],
  [
    { credential: { header: 'Proxy-Authorization' } },
    "`credential` sets `proxy-authorization`, which is the gateway's",
  ],
  [{ headers: 'X-A: a' }, '`headers` gives no record of headers'],
  [{ headers: new Headers({ 'X-A': 'a' }) }, '`headers` gives no record of headers'],
  [{ headers: { 'X-A': 'é' } }, '`headers` sets `x-a` to something that cannot be sent'],
  [{ headers: { 'X-A': 1 } }, '`headers` sets `x-a` to something that cannot be sent'],
  [{ headers: { 'X-A\r\nX-B': '1' } }, '`headers` names a header that cannot be sent'],
  [{ headers: { 'X-A': '1', 'x-a': '2' } }, '`headers` sets `x-a`, which is set already'],
  [{ headers: { Authorization: 'x' } }, '`headers` sets `authorization`, which is set already'],
  [{ headers: { 'x-key': 'x' }, credential: { header: 'X-Key' } }, '`headers` sets `x-key`, which is set already'],
  [{ headers: { Host: 'x' } }, "`headers` sets `host`, which is the gateway's"],
];

test.each(WRONG)('%j is refused in words, before anything is opened', (hooks, words) => {
  expect(making(hooks)).toThrow(TypeError);
  expect(making(hooks)).toThrow(words);
});

test.each([
  [{}],
  [{ credential: 'Bearer', headers: { 'X-A': 'a b', Date: '' } }],
  [{ credential: { header: 'X-Key' }, headers: () => ({}), onProblem: (problem: object) => problem }],
  [{ credential: () => ({ headers: {} }) }],
])('%j is taken', (hooks) => {
  expect(making(hooks)).toThrow(Opened);
});
