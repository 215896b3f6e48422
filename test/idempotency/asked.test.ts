import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { expectCommonHeaders, expectProblem } from '../http/problem.ts';
import { openSessions, expectOver, SESSION } from '../sessions/helpers.ts';
import { exampleRequest } from '../support/examples.ts';
import { manualClock } from '../support/clock.ts';
import type { TextAnswer } from '../support/http.ts';
import { callOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { accountIds, postIds, writeIds } from '../support/table.ts';
import { barrier, hold, json, reply, reset } from '../support/scripted-upstream.ts';
import { DAY_SECONDS, gist, good, openShop, type Shop } from './helpers.ts';

const PATH = '/bff/v1/outcome';
const NOT_FOUND = '404 outcome_not_found';

type Asked = Partial<Parameters<Shop['call']>[0]>;

const ask = ({ call, token, key }: Pick<Shop, 'call' | 'token' | 'key'>, asked: Asked = {}) =>
  call({ path: PATH, token, ...asked, headers: { 'Idempotency-Key': key, ...asked.headers } });

/** What is said of the key: its state, or a problem. */
const said = (answer: TextAnswer): unknown => {
  if (answer.status !== 200) return gist(answer);
  expectCommonHeaders(answer);
  expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
  return answer.json;
};

describe.each(accountIds)('who asks for the key of %s', (id) => {
  test('hears that it was never taken, is under way, and then when it was answered, as often as he asks', async () => {
    const shop = await openShop();
    expect(said(await ask(shop))).toBe(NOT_FOUND);
    const gate = barrier();
    shop.script(id, reply(hold(gate), good(id, 1)));
    const answer = shop.keyed(id);
    await gate.reached;
    expect(said(await ask(shop))).toEqual({ state: 'under_way' });
    gate.release();
    const { status } = await answer;
    const at = new Date(shop.clock.wall()).toISOString();
    for (let time = 0; time < 2; time++) expect(said(await ask(shop))).toEqual({ state: 'done', status, at });
    shop.advance(DAY_SECONDS - 1);
    expect(said(await ask(shop))).toEqual({ state: 'done', status, at });
    shop.advance(1);
    expect(said(await ask(shop))).toBe(NOT_FOUND);
    expect(shop.upstream.calls).toHaveLength(1);
  });

  test('hears that nobody knows', async () => {
    const shop = await openShop();
    shop.script(id, reset());
    expect((await shop.keyed(id)).json).toMatchObject({ outcome: 'unknown' });
    expect(said(await ask(shop))).toEqual({ state: 'unknown' });
    shop.advance(DAY_SECONDS - 1);
    expect(said(await ask(shop))).toEqual({ state: 'unknown' });
    expect(shop.upstream.calls).toHaveLength(1);
  });

  test('hears that there is none where the upstream has refused it', async () => {
    const shop = await openShop();
    shop.script(id, json(400, [{ message: 'No.', code: 'no' }]));
    expect(gist(await shop.keyed(id))).toBe('400 no');
    expect(said(await ask(shop))).toBe(NOT_FOUND);
  });

  test('hears nothing of the key of another account', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1));
    await shop.keyed(id);
    expect(said(await ask(shop, { token: secret() }))).toBe(NOT_FOUND);
  });
});

test('an answer that is too long to be kept is of unknown outcome', async () => {
  const shop = await openShop();
  const long = json(201, JSON.stringify({ text: 'x'.repeat(2_000_000) }));
  shop.upstream.once(callOf('purchasePlan'), long);
  expect((await shop.keyed('purchasePlan')).status).toBe(201);
  expect(said(await ask(shop))).toEqual({ state: 'unknown' });
});

test('an equal purchase without a key is not what is asked for', async () => {
  const shop = await openShop();
  shop.script('purchasePlan', reset());
  await shop.ask('purchasePlan');
  expect(said(await ask(shop))).toBe(NOT_FOUND);
});

test('a key of a call that takes no credential is not found', async () => {
  const shop = await openShop();
  shop.script('registerSocial', good('registerSocial', 1));
  expect((await shop.keyed('registerSocial')).status).toBe(201);
  expect(said(await ask(shop))).toBe(NOT_FOUND);
});

test('it is told while the upstream wants no calls', async () => {
  const shop = await openShop();
  shop.script('purchasePlan', good('purchasePlan', 1));
  await shop.keyed('purchasePlan');
  shop.script('createApiKey', json(429, '{"detail":"Slow."}', { 'Retry-After': '60' }));
  await shop.ask('createApiKey');
  expect(said(await ask(shop))).toMatchObject({ state: 'done' });
  expect(said(await ask(shop, { headers: { 'Idempotency-Key': 'another' } }))).toBe(NOT_FOUND);
});

describe('what is asked', () => {
  test.each([
    ['no key', undefined],
    ['an empty one', ''],
    ['one with a space', 'a b'],
    ['one that is too long', 'k'.repeat(256)],
  ])('has to have a key: %s is refused', async (_, key) => {
    const shop = await openShop();
    const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key };
    const answer = await shop.call({ path: PATH, token: shop.token, headers });
    const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed', instance: PATH });
    expect(errors).toMatchObject([{ field: 'Idempotency-Key' }]);
  });

  test('has to have a credential, which comes before its key', async () => {
    const shop = await openShop();
    for (const headers of [{ 'Idempotency-Key': shop.key }, {}])
      expect(gist(await shop.call({ path: PATH, headers }))).toBe('401 unauthenticated');
  });

  test('is a GET or a HEAD', async () => {
    const shop = await openShop();
    shop.script('purchasePlan', good('purchasePlan', 1));
    await shop.keyed('purchasePlan');
    const head = await ask(shop, { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
    for (const method of ['POST', 'DELETE']) expect(gist(await ask(shop, { method }))).toBe('405 method_not_allowed');
  });

  test.each([
    ['found', { 'Idempotency-Key': 'key' }, 404],
    ['refused', { 'Idempotency-Key': 'a b' }, 400],
  ])('counts once, whether it is %s or not', async (_, headers, status) => {
    const shop = await openShop({ RATE_LIMIT_PER_MINUTE: '2' });
    for (const left of [1, 0]) {
      const answer = await ask(shop, { headers });
      expect(answer.status).toBe(status);
      expect(answer.headers['ratelimit']).toMatch(new RegExp(`^"account";r=${left};`));
    }
    expect(gist(await ask(shop, { headers }))).toBe('429 rate_limited');
  });
});

test('where the store does not answer that is said, and when to ask again', async () => {
  const refusal = GatewayError.of('store_unavailable', { retryAfter: 1 });
  const away = { outcomeOf: async () => ({ use: undefined, refusal }) };
  const shop = await openShop({}, { store: Object.assign(memoryStore(manualClock()), away) });
  const answer = await ask(shop);
  expect(gist(answer)).toBe('503 store_unavailable');
  expect(answer.headers['retry-after']).toBe('1');
});

describe('by cookie', () => {
  test('the key is that of the account, as with its credential', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    const headers = { 'Idempotency-Key': 'of-a-page' };
    await world.askBy(cookie, 'purchasePlan', { headers });
    expect(said(await world.by(cookie, { path: PATH, headers }))).toMatchObject({ state: 'done' });
    expect(said(await world.call({ path: PATH, token: world.token, headers }))).toMatchObject({ state: 'done' });
  });

  test('a page of another site learns nothing, and a session that is over neither', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    const headers = { 'Idempotency-Key': 'key' };
    const foreign = { ...headers, 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' };
    expect(gist(await world.by(cookie, { path: PATH, headers: foreign }))).toBe('403 origin_rejected');
    expect(said(await world.by(cookie, { path: PATH, headers }))).toBe(NOT_FOUND);
    expect((await world.by(cookie, { path: SESSION, method: 'DELETE' })).status).toBe(204);
    for (const key of ['key', 'a b'])
      expectOver(await world.by(cookie, { path: PATH, headers: { 'Idempotency-Key': key } }));
  });
});

const expectUnknown = (answer: TextAnswer) => {
  expect(answer.json).toMatchObject({
    outcome: 'unknown',
    retryable: false,
    detail: expect.stringMatching(/the write may have happened/i),
  });
  expect(answer.json).not.toHaveProperty('retry_after');
  expect(answer.headers).not.toHaveProperty('retry-after');
};

describe('each problem of an unknown outcome says so:', () => {
  test.each(writeIds)('%s', async (id) => {
    const shop = await openShop();
    shop.script(id, json(503, '', { 'Retry-After': '5' }));
    expectUnknown(await shop.keyed(id));
    if (postIds.includes(id)) expectUnknown(await shop.keyed(id));
  });

  test('an equal purchase, with a key and without', async () => {
    const shop = await openShop();
    shop.script('purchasePlan', reset());
    expectUnknown(await shop.ask('purchasePlan'));
    for (const asking of [{}, { key: shop.key }]) expectUnknown(await shop.ask('purchasePlan', asking));
  });

  test.each(['registerSocial', 'loginSocial'] as const)('a session by %s', async (id) => {
    const world = await openSessions();
    world.upstream.on(callOf(id), reset());
    const path = `${SESSION}/${id === 'loginSocial' ? 'login' : 'register'}`;
    const { body } = exampleRequest(id);
    const headers = { 'Idempotency-Key': 'key', 'Sec-Fetch-Site': 'same-origin' };
    for (let time = 0; time < 2; time++) expectUnknown(await world.call({ path, body, headers }));
  });
});
