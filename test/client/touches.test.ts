import { QueryClient } from '@tanstack/query-core';
import { describe, expect, test } from 'vitest';
import { touches } from '../../client/src/index.ts';
import { queriesOf } from '../../client/src/query.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { json } from '../support/scripted-upstream.ts';
import { allOperations, allOverviews } from '../support/account-api.ts';
import { openStandIn } from './helpers.ts';

const reads = allOperations.filter(({ method }) => method === 'GET');
const writes = allOperations.filter(({ invalidates = [] }) => invalidates.length > 0);

/** As the table says. */
const isTouched = (read: Operation, { invalidates = [] }: Operation) =>
  invalidates.some((one) => one === 'everything' || (typeof one === 'object' ? one.item : one) === read.group);

function touchedBy(write: Operation): string[] {
  const touched = new Set<string>(reads.filter((read) => isTouched(read, write)).map(({ id }) => id));
  const shown = allOverviews.filter(({ sections }) => Object.values(sections).some(({ read }) => touched.has(read.id)));
  return [...touched, ...shown.map(({ id }) => id)];
}

test.for(writes.map((write) => [write.id, write] as const))('%s touches what its row says', ([id, write]) => {
  expect(touches(id as Parameters<typeof touches>[0]).toSorted()).toEqual(touchedBy(write).toSorted());
});

describe('TanStack Query', () => {
  test('reads again what a write has touched, of this account alone', async () => {
    const { gateway, portico } = await openStandIn();
    gateway.on(() => true, json(200, { results: [], next: null }));
    const client = new QueryClient();
    for (const account of ['ann', 'bob']) {
      const query = queriesOf(portico, account);
      await client.fetchQuery(query('getReferralConfig'));
      await client.fetchQuery(query('getReferralOverview', { sections: ['credits'] }));
      await client.fetchQuery(query('getSubscription'));
      await client.fetchInfiniteQuery(query.pages('listTransactions'));
    }
    const stale = () =>
      client
        .getQueryCache()
        .getAll()
        .filter(({ state }) => state.isInvalidated)
        .map(({ queryKey }) => queryKey.slice(0, 2).join(' '));

    const account = 'ann';
    const touched = new Set<unknown>(touches('updateReferralConfig'));
    await client.invalidateQueries({ predicate: ({ queryKey: [of, id] }) => of === account && touched.has(id) });
    expect(stale()).toEqual(['ann getReferralConfig', 'ann getReferralOverview']);

    const all = new Set<unknown>(touches('purchasePlan'));
    await client.invalidateQueries({ predicate: ({ queryKey: [of, id] }) => of === 'bob' && all.has(id) });
    expect(stale()).toHaveLength(6);
    client.clear();
  });
});
