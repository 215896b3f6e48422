import { expect, test } from 'vitest';
import type { Portico } from '../../client/src/index.ts';
import { json } from '../support/scripted-upstream.ts';
import { openStandIn } from './helpers.ts';

const CALLS: readonly (readonly [string, number, (portico: Portico) => Promise<unknown>])[] = [
  ['a DELETE with 204', 204, (portico) => portico.deletePaymentMethod()],
  ['a DELETE with 200', 200, (portico) => portico.deletePaymentMethod()],
  ['a write that sends nothing with 200', 200, (portico) => portico.refreshProxyList()],
  ['a write that sends something with 204', 204, (portico) => portico.updateReferralConfig({ mode: 'credits' })],
  ['a read with 204', 204, (portico) => portico.getSubscription()],
];

test.for(CALLS)('an answer without a body to %s is undefined, and no problem', async ([, status, act]) => {
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, json(status, ''));
  expect(await act(portico)).toBeUndefined();
  expect(gateway.calls).toHaveLength(1);
});
