import { expect, test } from 'vitest';
import { createClient, each } from '../../client/src/index.ts';
import { exampleBody } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';
import { openClient, openStandIn, problem, problemOf } from './helpers.ts';

const PATH = '/api/v2/payment/transaction/';

/** A page of entries with these ids. */
const page = (ids: readonly number[], next: string | null) =>
  json(200, { count: 99, next, previous: null, results: ids.map((id) => ({ id })) });

const idsOf = async (entries: AsyncIterable<{ readonly id: number }>) => {
  const ids: number[] = [];
  for await (const { id } of entries) ids.push(id);
  return ids;
};

test('entries come page by page in their order, until there is no next page', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(`GET ${PATH}?page_size=2`, page([1, 2], `${gateway.url}${PATH}?page=2&page_size=2`));
  gateway.on(`GET ${PATH}?page=2&page_size=2`, page([], `${gateway.url}${PATH}?page=3&page_size=2`));
  gateway.on(`GET ${PATH}?page=3&page_size=2`, page([3], null));
  expect(await idsOf(each(portico, 'listTransactions', { page_size: 2 }))).toEqual([1, 2, 3]);
  expect(gateway.calls).toHaveLength(3);
});

test('a page is asked for when the one before is used up, and not before', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, page([1, 2], `${gateway.url}${PATH}?page=2`), page([3], null));
  const entries = each(portico, 'listTransactions');
  const asked = [];
  for (let step = await entries.next(); !step.done; step = await entries.next())
    asked.push([step.value.id, gateway.calls.length]);
  expect(asked).toEqual([
    [1, 1],
    [2, 1],
    [3, 2],
  ]);
});

test('a loop that is left asks for no other page', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, page([1, 2], `${gateway.url}${PATH}?page=2`));
  for await (const { id } of each(portico, 'listTransactions')) if (id === 2) break;
  expect(gateway.calls).toHaveLength(1);
});

test('of the link to the next page only the query counts: another host does not get the key', async () => {
  const { gateway, portico } = await openStandIn();
  const { gateway: other } = await openStandIn();
  gateway.on(() => true, page([1], `${other.url}/elsewhere/?page=2&status=a%2Cb`), page([2], null));
  expect(await idsOf(each(portico, 'listTransactions'))).toEqual([1, 2]);
  expect(gateway.calls[1]!.target).toBe(`${PATH}?page=2&status=a%2Cb`);
  expect([other.calls.length, other.connections()]).toEqual([0, 0]);
});

test('options hold for every page; their query is that of the first, and the links have it from then on', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, page([1], `${gateway.url}${PATH}?page=2&status=completed`), page([2], null));
  const options = { fresh: true, headers: { 'X-Request-Id': 'mine' }, query: { status: 'completed' } };
  await idsOf(each(portico, 'listTransactions', { page_size: 5 }, options));
  expect(gateway.calls.map(({ target }) => target)).toEqual([
    `${PATH}?page_size=5&status=completed`,
    `${PATH}?page=2&status=completed`,
  ]);
  for (const { headers } of gateway.calls)
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-request-id': 'mine' });
});

test('a page that fails is thrown as its problem, after the entries before it', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, page([1, 2], `${gateway.url}${PATH}?page=2`), problem(404, 'not_found'));
  const seen: number[] = [];
  const looped = async () => {
    for await (const { id } of each(portico, 'listTransactions')) seen.push(id);
  };
  expect((await problemOf(looped())).code).toBe('not_found');
  expect(seen).toEqual([1, 2]);
});

/** A page of the upstream. */
const body = (id: number, next: string | null) => {
  const result = JSON.parse(exampleBody('listTransactions')) as { results: object[] };
  return json(200, exampleBody('listTransactions', { next, results: [{ ...result.results[0], id }] }));
};

test('pages of the real gateway link to each other, whatever the upstream calls itself', async () => {
  const world = await openClient();
  const { upstream, gateway, token } = world;
  upstream.on(`GET ${PATH}?page_size=1`, body(1, `${upstream.url}${PATH}?page=2&page_size=1`));
  upstream.on(`GET ${PATH}?page=2&page_size=1`, body(2, null));
  const portico = createClient({ url: gateway.url, token });
  expect(await idsOf(each(portico, 'listTransactions', { page_size: 1 }))).toEqual([1, 2]);
});
