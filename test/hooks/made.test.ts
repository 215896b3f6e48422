import { expect, test, vi } from 'vitest';
import { fromEnv } from '../../src/entry/node/index.ts';
import { overview } from '../../src/gateway/overviews.ts';
import { portico, type PorticoOptions, type Runtime } from '../../src/portico.ts';
import type { Hooks } from '../../src/upstream/hooks.ts';
import { operations } from '../support/account-api.ts';

const overviewAt = (path: `/bff/v1/${string}`) =>
  overview(path, { subscription: { read: operations.getSubscription } });

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

test.each([
  [{ runtime, rows: operations, onproblem: () => ({}) }, 'portico takes no `onproblem`'],
  [{ rows: operations }, 'portico needs a runtime: `...fromEnv(process.env)`'],
  [{ runtime }, 'portico needs `rows`'],
])('%j are no options of a gateway, which is said in words', (options, words) => {
  expect(() => portico(options as PorticoOptions)).toThrow(words);
});

test('what is opened for a gateway that then cannot be is closed again', async () => {
  const { open, ...rest } = fromEnv({ UPSTREAM_BASE_URL: 'http://127.0.0.1:9', LOG_LEVEL: 'silent' }).runtime;
  const drained = vi.fn<() => void>();
  const opening: Runtime = {
    ...rest,
    open: (given) => {
      const opened = open(given);
      return { ...opened, drain: () => opened.drain().then(drained) };
    },
  };
  const two = [overviewAt('/bff/v1/mine'), overviewAt('/bff/v1/mine')];
  expect(() => portico({ runtime: opening, rows: operations, overviews: two })).toThrow('is at the path of another');
  await vi.waitFor(() => expect(drained).toHaveBeenCalledTimes(1));
});

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
