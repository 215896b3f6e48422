import { expect, test } from 'vitest';
import { type CallOptions, keepCopies } from '../../client/src/index.ts';
import { json } from '../support/scripted-upstream.ts';
import { openClient, openStandIn, PLAN } from './helpers.ts';

test('no copy is kept of what says `no-store`, such as a pending payment', async () => {
  const { portico, gateway } = await openStandIn({ copies: keepCopies() });
  gateway.on(() => true, json(200, { id: 1 }, { etag: '"one"', 'cache-control': 'no-store' }));
  await portico.getPendingPayment({ id: 1 });
  await portico.getPendingPayment({ id: 1 });
  expect(gateway.calls.map(({ headers }) => 'if-none-match' in headers)).toEqual([false, false]);
});

test('after an answer with the changed sections only, the next one is whole', async () => {
  const { portico, ...world } = await openClient({}, { copies: keepCopies() });
  let mark = 1;
  world.answerAll(() => mark);
  const names = async (options?: CallOptions) =>
    Object.keys((await portico.getBillingOverview(undefined, options)).data);
  const all = await names();
  mark = 2;
  await portico.purchasePlan(PLAN);
  expect((await names({ headers: { Prefer: 'changed-sections' } })).length).toBeLessThan(all.length);
  expect(await names()).toEqual(all);
});
