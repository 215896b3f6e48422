import { describe, expect, test } from 'vitest';
import { PorticoProblem, readBatch } from '../../client/src/index.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { exampleInput } from '../support/examples.ts';
import { openClient, openStandIn, problem, problemBody, problemOf } from './helpers.ts';

const BATCH = 'POST /bff/v1/batch';

describe('of the gateway', () => {
  test('answers stand under the names of the reads, and a read that failed is its problem', async () => {
    const { portico, upstream } = await openClient();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    upstream.on(callOf('getApiKey'), json(404, {}));
    upstream.on('GET /api/v2/payment/transaction/?page=2', json(200, bodyOf('listTransactions', 3)));
    const { plan, key, list, ...others } = await readBatch(portico, {
      plan: ['getSubscription'],
      key: ['getApiKey', { id: 12_345 }],
      list: ['listTransactions', { page: 2 }],
    });
    expect(others).toEqual({});
    expect([plan, list]).toMatchObject([{ x_mark: 1 }, { x_mark: 3 }]);
    expect(key).toBeInstanceOf(PorticoProblem);
    expect(key).toMatchObject({
      status: 404,
      code: 'not_found',
      problem: { instance: exampleInput('getApiKey').path },
    });
    expect(upstream.calls).toHaveLength(3);
  });

  test('a read that the upstream answers with 204 is nothing, and the others are what they are', async () => {
    const { portico, upstream } = await openClient();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    upstream.on(callOf('listPaymentMethods'), json(204, ''));
    const answers = await readBatch(portico, { plan: ['getSubscription'], cards: ['listPaymentMethods'] });
    expect(answers).toMatchObject({ plan: { x_mark: 1 }, cards: null });
  });

  test('more than twenty are refused as a whole, and that is thrown', async () => {
    const { portico } = await openClient();
    const reads = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`r${n}`, ['getSubscription'] as const]));
    expect((await problemOf(readBatch(portico, reads))).status).toBe(400);
  });

  test('a key that the upstream refuses is the problem of each of them', async () => {
    const { portico, upstream } = await openClient();
    upstream.on(callOf('getSubscription'), json(401, {}));
    const answers = await readBatch(portico, { a: ['getSubscription'], b: ['listTransactions'] });
    expect(Object.values(answers)).toEqual([expect.any(PorticoProblem), expect.any(PorticoProblem)]);
    expect(Object.values(answers)).toMatchObject([{ status: 401 }, { status: 401 }]);
  });
});

/** A gateway that answers each read with its path. */
async function openEcho() {
  const standIn = await openStandIn();
  standIn.gateway.on(BATCH, ({ call, socket }) => {
    const { requests } = JSON.parse(call.body) as { requests: { id: string; path: string }[] };
    const responses = requests.map(({ id, path }) => ({ id, status: 200, body: path }));
    return json(200, { responses })({ call, socket, gone: Promise.resolve() });
  });
  return standIn;
}

test('paths are those of the calls themselves, ids and queries in them', async () => {
  const { portico } = await openEcho();
  expect(
    await readBatch(portico, {
      a: ['getTransaction', { id: '9223372036854775807' }],
      b: ['listReferralCredits', { page: 2, page_size: 5 }],
    }),
  ).toEqual({
    a: '/api/v2/payment/transaction/9223372036854775807/',
    b: '/api/v2/referral/credit/?page=2&page_size=5',
  });
});

test('names may be any, and stay in their order', async () => {
  const { gateway, portico } = await openEcho();
  const names = ['z', 'a', '__proto__', 'constructor', 'é ü', 'x'.repeat(64)];
  const reads = Object.fromEntries(names.map((name) => [name, ['getSubscription'] as const]));
  const answers = await readBatch(portico, reads);
  expect(Object.keys(answers)).toEqual(names);
  expect(Object.getPrototypeOf(answers)).toBe(Object.prototype);
  expect(JSON.parse(gateway.calls[0]!.body)).toEqual({
    requests: names.map((id) => ({ id, path: '/api/v2/subscription/' })),
  });
});

test('options are those of the batch', async () => {
  const { gateway, portico } = await openEcho();
  await readBatch(portico, { a: ['getSubscription'] }, { fresh: true, headers: { 'X-Request-Id': 'mine' } });
  expect(gateway.calls[0]!.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-request-id': 'mine' });
});

test('a problem of a read has its errors by field, as one that is thrown', async () => {
  const { gateway, portico } = await openStandIn();
  const body = problemBody(400, 'validation_error', { errors: [{ code: 'bad', message: 'Bad.', field: 'page' }] });
  gateway.on(BATCH, json(200, { responses: [{ id: 'a', status: 400, body }] }));
  const { a } = await readBatch(portico, { a: ['listTransactions', { page: -1 }] });
  expect((a as PorticoProblem).errors['page']).toEqual([{ code: 'bad', message: 'Bad.' }]);
});

test('a read that is answered with another 2xx than 200 is what it says', async () => {
  const { gateway, portico } = await openStandIn();
  const responses = [
    { id: 'a', status: 204, body: null },
    { id: 'b', status: 203, body: { plan: 3 } },
  ];
  gateway.on(BATCH, json(200, { responses }));
  expect(await readBatch(portico, { a: ['getSubscription'], b: ['getSubscription'] })).toEqual({
    a: null,
    b: { plan: 3 },
  });
});

test('a failure of the whole is thrown', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(BATCH, problem(429, 'rate_limited'));
  expect((await problemOf(readBatch(portico, { a: ['getSubscription'] }))).code).toBe('rate_limited');
});
