import { describe, expect, test } from 'vitest';
import { CancelledError, InfiniteQueryObserver, QueryClient } from '@tanstack/query-core';
import { keepCopies } from '../../client/src/index.ts';
import { queriesOf } from '../../client/src/query.ts';
import { barrier, hold, json } from '../support/scripted-upstream.ts';
import { openStandIn, passPauses, problem, problemOf, SUBSCRIPTION, thrownBy } from './helpers.ts';

const PATH = '/api/v2/payment/transaction/';
const NO_SIGNAL = new AbortController().signal;

const page = (ids: readonly number[], next: string | null) =>
  json(200, { count: 3, next, previous: null, results: ids.map((id) => ({ id })) });

/** A list of two pages. */
async function openPages() {
  const standIn = await openStandIn();
  const { gateway } = standIn;
  gateway.on(`GET ${PATH}?page_size=2`, page([1, 2], `${gateway.url}${PATH}?page=2&page_size=2`));
  gateway.on(`GET ${PATH}?page=2&page_size=2`, page([3], null));
  return { ...standIn, query: queriesOf(standIn.portico, 'ann') };
}

describe('options', () => {
  test('are plain objects, whose keys begin with the account, and which do not try again', async () => {
    const { portico } = await openStandIn();
    const query = queriesOf(portico, 'ann');
    const options = [
      query('getSubscription'),
      query('getTransaction', { id: 5 }),
      query('getAccountOverview', { sections: ['subscription'] }),
      query.pages('listTransactions', { page_size: 2 }),
    ];
    expect(options.map(({ queryKey }) => queryKey)).toEqual([
      ['ann', 'getSubscription', {}],
      ['ann', 'getTransaction', { id: 5 }],
      ['ann', 'getAccountOverview', { sections: ['subscription'] }],
      ['ann', 'listTransactions', { page_size: 2 }, 'pages'],
    ]);
    for (const one of options) {
      expect(Object.getPrototypeOf(one)).toBe(Object.prototype);
      expect(one.retry).toBe(false);
    }
  });

  test('of a list and of its pages have keys of their own, since they keep different things', async () => {
    const { portico } = await openStandIn();
    const query = queriesOf(portico, 'ann');
    expect(query('listTransactions').queryKey).not.toEqual(query.pages('listTransactions').queryKey);
  });

  test('pass the signal on', async () => {
    const { gateway, portico } = await openStandIn();
    const gate = barrier();
    gateway.on(SUBSCRIPTION, hold(gate));
    const controller = new AbortController();
    const thrown = thrownBy(queriesOf(portico, 'ann')('getSubscription').queryFn({ signal: controller.signal }));
    await gate.reached;
    controller.abort('gone');
    expect(await thrown).toBe('gone');
    await gateway.disconnected(gateway.calls[0]!);
  });

  test('of pages lead from one to the next, by the query of its link', async () => {
    const { query, gateway } = await openPages();
    const { queryFn, initialPageParam, getNextPageParam } = query.pages('listTransactions', { page_size: 2 });
    const first = await queryFn({ signal: NO_SIGNAL, pageParam: initialPageParam });
    const next = getNextPageParam(first);
    expect(next).toBe('page=2&page_size=2');
    const second = await queryFn({ signal: NO_SIGNAL, pageParam: next! });
    expect([first, second].flatMap(({ results }) => results.map(({ id }) => id))).toEqual([1, 2, 3]);
    expect(getNextPageParam(second)).toBeNull();
    expect(gateway.calls).toHaveLength(2);
  });
});

describe('TanStack Query', () => {
  test('fetches a query once, and gives what it has to the next', async () => {
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, json(200, { plan: 3 }));
    const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
    const query = queriesOf(portico, 'ann');
    const first = await client.fetchQuery(query('getSubscription'));
    expect(first).toEqual({ plan: 3 });
    expect(await client.fetchQuery(query('getSubscription'))).toBe(first);
    expect(client.getQueryData(['ann', 'getSubscription', {}])).toBe(first);
    expect(gateway.calls).toHaveLength(1);
    client.clear();
  });

  test('keeps the same object when it fetches again and nothing has changed', async () => {
    const { gateway, portico } = await openStandIn({ copies: keepCopies() });
    gateway.on(SUBSCRIPTION, json(200, { plan: 3 }, { etag: '"1"' }), json(304, '', { etag: '"1"' }));
    const client = new QueryClient();
    const { queryKey, queryFn, retry } = queriesOf(portico, 'ann')('getSubscription');
    await client.fetchQuery({ queryKey, queryFn, retry });
    const first = client.getQueryData(queryKey);
    await client.fetchQuery({ queryKey, queryFn, retry });
    expect(client.getQueryData(queryKey)).toBe(first);
    expect(gateway.calls).toHaveLength(2);
    client.clear();
  });

  test('does not try again what the client has tried: three calls in all', async () => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, problem(503, 'a_code', { retryable: true }));
    const client = new QueryClient();
    expect((await problemOf(client.fetchQuery(queriesOf(portico, 'ann')('getSubscription')))).status).toBe(503);
    expect(gateway.calls).toHaveLength(3);
    client.clear();
  });

  test('cancels a query: the client leaves', async () => {
    const { gateway, portico } = await openStandIn();
    const gate = barrier();
    gateway.on(SUBSCRIPTION, hold(gate));
    const client = new QueryClient();
    const query = queriesOf(portico, 'ann')('getSubscription');
    const thrown = thrownBy(client.fetchQuery(query));
    await gate.reached;
    await client.cancelQueries({ queryKey: ['ann'] });
    expect(await thrown).toBeInstanceOf(CancelledError);
    await gateway.disconnected(gateway.calls[0]!);
    client.clear();
  });

  test('fetches pages, as many as are wanted', async () => {
    const { query, gateway } = await openPages();
    const client = new QueryClient();
    const pages = query.pages('listTransactions', { page_size: 2 });
    const one = await client.fetchInfiniteQuery(pages);
    expect(one.pages.map(({ results }) => results.length)).toEqual([2]);
    const all = await client.fetchInfiniteQuery({ ...pages, pages: 5 });
    expect(all.pages.flatMap(({ results }) => results.map(({ id }) => id))).toEqual([1, 2, 3]);
    expect(gateway.calls).toHaveLength(3);
    client.clear();
  });

  test('knows by the last page whether there is another', async () => {
    const { query } = await openPages();
    const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
    const pages = query.pages('listTransactions', { page_size: 2 });
    await client.fetchInfiniteQuery(pages);
    const observer = new InfiniteQueryObserver(client, pages);
    const leave = observer.subscribe(() => undefined);
    expect(observer.getCurrentResult().hasNextPage).toBe(true);
    const { data, hasNextPage } = await observer.fetchNextPage();
    expect([data?.pages.length, hasNextPage]).toEqual([2, false]);
    leave();
    client.clear();
  });

  test('forgets one account at a sign-out, and no other', async () => {
    const { gateway, portico } = await openStandIn();
    gateway.on(() => true, json(200, { plan: 3, next: null, results: [] }));
    const client = new QueryClient();
    for (const account of ['ann', 'bob']) {
      const query = queriesOf(portico, account);
      await client.fetchQuery(query('getSubscription'));
      await client.fetchQuery(query('getTransaction', { id: 5 }));
      await client.fetchInfiniteQuery(query.pages('listTransactions'));
    }
    client.removeQueries({ queryKey: ['ann'] });
    const left = client
      .getQueryCache()
      .getAll()
      .map(({ queryKey }) => (queryKey as string[])[0]);
    expect(left).toEqual(['bob', 'bob', 'bob']);
    client.clear();
  });
});
