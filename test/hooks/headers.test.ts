import { describe, expect, test } from 'vitest';
import type { CalledOperation, FurtherHeaders } from '../../src/upstream/hooks.ts';
import { json } from '../support/scripted-upstream.ts';
import { expectProblem } from '../http/problem.ts';
import { gist, openShop } from '../idempotency/helpers.ts';
import { allOperations } from '../support/account-api.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { rowOf, writeIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

test('a record is sent with every operation', async () => {
  const world = await openWorld({}, { hooks: { headers: { 'X-Gateway': 'portico', 'X-Empty': '' } } });
  world.answerAll();
  for (const { id } of allOperations) await world.ask(id);
  expect(world.upstream.calls).toHaveLength(allOperations.length);
  for (const { headers } of world.upstream.calls)
    expect(headers).toMatchObject({ 'x-gateway': 'portico', 'x-empty': '' });
});

test('a function is asked once for each call, with the operation and nothing else', async () => {
  const asked: CalledOperation[] = [];
  const headers: FurtherHeaders = (...args) => {
    asked.push(...args);
    return { 'X-Count': String(asked.length) };
  };
  const world = await openWorld({}, { hooks: { headers } });
  world.answerAll();
  for (const { id } of allOperations) await world.ask(id);
  expect(asked).toEqual(allOperations.map(({ id, method, path }) => ({ id, method, path })));
  expect(world.upstream.calls.map(({ headers: sent }) => sent['x-count'])).toEqual(
    asked.map((_, at) => String(at + 1)),
  );
});

test('a function is not asked for an answer from the cache, nor again when a call is tried again', async () => {
  let count = 0;
  const world = await openWorld({}, { hooks: { headers: () => ({ 'X-Count': String(++count) }) } });
  world.upstream.on(callOf('getSubscription'), json(503), json(200, bodyOf('getSubscription', 1)));
  for (let asked = 0; asked < 2; asked++) expect((await world.ask('getSubscription')).status).toBe(200);
  expect([count, world.upstream.calls.map(({ headers }) => headers['x-count'])]).toEqual([1, ['1', '1']]);
});

const WRONG: readonly (readonly [what: string, given: () => unknown])[] = [
  [
    'throws',
    () => {
      throw new SyntaxError('no');
    },
  ],
  ['gives nothing', () => undefined],
  ['gives a promise', () => Promise.resolve({ 'X-A': 'a' })],
  ['gives a promise that fails', () => Promise.reject(new Error('no'))],
  ['gives `Headers`', () => new Headers({ 'X-A': 'a' })],
  ['gives a list', () => ['X-A', 'a']],
  ['sets `Authorization`', () => ({ Authorization: 'Token other' })],
  ['sets `Cookie`', () => ({ Cookie: 'a=b' })],
  ['sets the header of the credential', () => ({ 'x-token': 'other' })],
  ['gives a line break', () => ({ 'X-A': 'a\nX-B: b' })],
];

describe.each(WRONG)('a function that %s', (_, given) => {
  const hooks = {
    headers: given as FurtherHeaders,
    credential: (key: string) => ({ headers: { 'X-Token': key } }),
  };

  test('is a fault of the gateway, and nothing is sent', async () => {
    const world = await openWorld({}, { hooks });
    expectProblem(await world.ask('getSubscription'), { status: 500, code: 'internal_error' });
    expect(world.gateway.lines.filter(({ msg }) => msg === 'the hook `headers` has failed')).toHaveLength(1);
    expect(world.upstream.calls).toEqual([]);
  });
});

test.each(writeIds)('where it fails, the key of %s is free again', async (id) => {
  let isBroken = true;
  const headers = () => ({ 'X-A': isBroken ? 'é' : 'a' });
  const shop = await openShop({}, { hooks: { headers } });
  const isKeyed = rowOf(id).method === 'POST';
  const ask = () => (isKeyed ? shop.keyed(id) : shop.ask(id));
  expect(gist(await ask())).toBe('500 internal_error');
  isBroken = false;
  shop.answerAll();
  expect((await ask()).status).toBeLessThan(300);
  expect(shop.upstream.calls).toHaveLength(1);
});
