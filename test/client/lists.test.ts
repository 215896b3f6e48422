import { describe, expect, test } from 'vitest';
import { each, PorticoProblem, readBatch } from '../../client/src/index.ts';
import { routes } from '../../client/src/table.ts';
import { json, LIST, openStandIn, problemBody, problemOf } from './helpers.ts';

/** A page of entries with these ids. */
const page = (ids: readonly number[], next: string | null) =>
  json(200, { count: 99, next, previous: null, results: ids.map((id) => ({ id })) });

describe('each', () => {
  test('gives entries page by page in their order, and asks for a page when the one before is used up', async () => {
    const { gateway, portico } = openStandIn();
    gateway.on(`GET ${LIST}?page_size=2`, page([1, 2], `${LIST}?page=2&page_size=2`));
    gateway.on(`GET ${LIST}?page=2&page_size=2`, page([], `${LIST}?page=3&page_size=2`));
    gateway.on(`GET ${LIST}?page=3&page_size=2`, page([3], null));
    const seen: string[] = [];
    for await (const { id } of each(portico, 'listTransactions', { page_size: 2 }))
      seen.push(`${id} after ${gateway.calls.length}`);
    expect([seen, gateway.calls.length]).toEqual([['1 after 1', '2 after 1', '3 after 3'], 3]);
  });

  test('has the ids of its path on every page', async () => {
    const { gateway, clientWith } = openStandIn();
    gateway.on('GET /api/shops/7/orders/?page_size=2', page([1], '/api/shops/7/orders/?page=2'));
    gateway.on('GET /api/shops/7/orders/?page=2', page([2], null));
    const own = clientWith({ routes: { ...routes, listTransactions: 'GET /api/shops/{shop}/orders/' } });
    const input = { shop: 7, page_size: 2 };
    const ids = [];
    for await (const { id } of each(own, 'listTransactions', input)) ids.push(id);
    expect(ids).toEqual([1, 2]);
  });

  test.for([
    ['leads back to the same page', `${LIST}?page_size=2`, 1],
    ['leads back to a page before', `${LIST}?page=2&page_size=2`, 2],
    ['has no query', `https://other.test${LIST}`, 1],
    ['has an empty query', `${LIST}?`, 1],
    ['is a number', 2, 1],
    ['is true', true, 1],
  ] as const)('throws where `next` %s, after what has come', async ([, next, calls]) => {
    const { gateway, portico } = openStandIn();
    gateway.on(`GET ${LIST}?page_size=2`, page([1], (calls === 1 ? next : `${LIST}?page=2&page_size=2`) as string));
    gateway.on(`GET ${LIST}?page=2&page_size=2`, page([2], next as string));
    const seen: number[] = [];
    const reading = async () => {
      for await (const { id } of each(portico, 'listTransactions', { page_size: 2 })) seen.push(id);
    };
    const thrown = await problemOf(reading());
    expect([thrown.code, String(thrown.cause)]).toEqual(['unexpected_answer', expect.stringContaining(String(next))]);
    expect([seen.length, gateway.calls.length]).toEqual([calls, calls]);
  });

  test.for([null, undefined, ''])('ends where `next` is %j', async (next) => {
    const { gateway, portico } = openStandIn();
    gateway.on(`GET ${LIST}`, page([1], next as null));
    const entries = each(portico, 'listTransactions');
    expect([(await entries.next()).value, (await entries.next()).done]).toEqual([{ id: 1 }, true]);
  });

  test('takes only the query of a link: another host does not get the key; options hold for every page', async () => {
    const { gateway, portico } = openStandIn();
    gateway.on('*', page([1], 'https://other.test/elsewhere/?page=2&status=a%2Cb'), page([2], null));
    const options = { fresh: true, headers: { 'X-Request-Id': 'mine' }, query: { status: 'completed' } };
    for await (const _ of each(portico, 'listTransactions', { page_size: 5 }, options));
    const targets = gateway.calls.map(({ target }) => target);
    expect(targets).toEqual([`${LIST}?page_size=5&status=completed`, `${LIST}?page=2&status=a%2Cb`]);
    for (const { headers } of gateway.calls)
      expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-request-id': 'mine' });
  });
});

const BATCH = 'POST /bff/v1/batch';

/** A gateway that answers each read with its path. */
function openEcho() {
  const standIn = openStandIn();
  standIn.gateway.on(BATCH, (call) => {
    const { requests } = JSON.parse(call.body) as { requests: { id: string; path: string }[] };
    return json(200, { responses: requests.map(({ id, path }) => ({ id, status: 200, body: path })) })(call);
  });
  return standIn;
}

describe('a batch', () => {
  test('has the paths of the calls themselves, ids and queries in them, and its own options', async () => {
    const { gateway, portico } = openEcho();
    const reads = {
      a: ['getTransaction', { id: '9223372036854775807' }],
      b: ['listReferralCredits', { page: 2, page_size: 5 }],
    } as const;
    const options = { fresh: true, headers: { 'X-Request-Id': 'mine' } };
    expect(await readBatch(portico, reads, options)).toEqual({
      a: '/api/v2/payment/transaction/9223372036854775807/',
      b: '/api/v2/referral/credit/?page=2&page_size=5',
    });
    expect(gateway.calls[0]!.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-request-id': 'mine' });
  });

  test('may have any names, which stay in their order', async () => {
    const { gateway, portico } = openEcho();
    const names = ['z', 'a', '__proto__', 'constructor', 'é ü', 'x'.repeat(64)];
    const reads = Object.fromEntries(names.map((name) => [name, ['getSubscription'] as const]));
    const answers = await readBatch(portico, reads);
    expect(Object.keys(answers)).toEqual(names);
    expect(Object.getPrototypeOf(answers)).toBe(Object.prototype);
    const requests = names.map((id) => ({ id, path: '/api/v2/subscription/' }));
    expect(JSON.parse(gateway.calls[0]!.body)).toEqual({ requests });
  });

  test('gives the problem of a read that failed, with its errors by field, and any 2xx as what it says', async () => {
    const { gateway, portico } = openStandIn();
    const body = problemBody(400, 'validation_error', { errors: [{ code: 'bad', message: 'Bad.', field: 'page' }] });
    const answers = [
      { id: 'a', status: 400, body },
      { id: 'b', status: 204, body: null },
      { id: 'c', status: 203, body: { plan: 3 } },
    ];
    gateway.on(BATCH, json(200, { responses: answers }));
    const reads = { a: ['listTransactions', { page: -1 }], b: ['getSubscription'], c: ['getSubscription'] } as const;
    const { a, b, c } = await readBatch(portico, reads);
    expect(a).toBeInstanceOf(PorticoProblem);
    expect((a as PorticoProblem).errors['page']).toEqual([{ code: 'bad', message: 'Bad.' }]);
    expect([b, c]).toEqual([null, { plan: 3 }]);
  });
});
