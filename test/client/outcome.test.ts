import { describe, expect, test } from 'vitest';
import { createClient, outcomeOf } from '../../client/src/index.ts';
import { legOf, openOverviews, overviewTable } from '../overviews/helpers.ts';
import { json } from '../../src/testing/scripted-upstream.ts';
import { exampleBody } from '../support/examples.ts';
import { problemOf } from './helpers.ts';

const billing = overviewTable.map(([, overview]) => overview).find(({ id }) => id === 'getBillingOverview')!;

interface Payment {
  readonly id: number;
  readonly plan: number;
  readonly is_renewal: boolean;
}

const payment = (id: number, plan: number, is_renewal = false): Payment => ({ id, plan, is_renewal });
const pendingOf = (payments: readonly Payment[]) => ({
  results: payments.map((one) => ({ ...(JSON.parse(exampleBody('getPendingPayment')) as object), ...one })),
});

/** The account as it is now. */
async function openAccount(plan: number, payments: readonly Payment[] = []) {
  const world = await openOverviews();
  const set = (now: number, pending: readonly Payment[]) => {
    world.on(legOf(billing, 'subscription'), json(200, exampleBody('getSubscription', { plan: now })));
    world.on(legOf(billing, 'pending_payments'), json(200, exampleBody('listPendingPayments', pendingOf(pending))));
  };
  set(plan, payments);
  return { ...world, set, portico: createClient({ url: world.gateway.url, token: world.token }) };
}

const OLD = 1;
const NEW = 2;
const known = payment(10, OLD);
const renewal = payment(11, OLD, true);
const own = payment(12, NEW);

describe('with the pending payments of before', () => {
  test.for([
    ['another plan', NEW, [], 'bought', undefined],
    ['another plan, and a payment of its own', NEW, [known, own], 'bought', own],
    ['the old plan, and another payment', OLD, [known, own], 'begun', own],
    ['the old plan, and no other payment', OLD, [known], 'not_seen', undefined],
    ['the old plan, and the payment of before gone', OLD, [], 'not_seen', undefined],
    ['the old plan, and another payment that is a renewal', OLD, [known, renewal], 'not_seen', undefined],
    ['another plan, and another payment that is a renewal', NEW, [renewal], 'bought', undefined],
  ] as const)('%s: %s, %o: %s', async ([, plan, payments, state, expected]) => {
    const account = await openAccount(OLD, [known]);
    const before = await account.portico.getBillingOverview();
    account.set(plan, payments);
    const found = await outcomeOf(account.portico, before.data);
    expect([found.state, found.subscription.plan]).toEqual([state, plan]);
    if (expected) expect(found.payment).toMatchObject(expected);
    else expect(found.payment).toBeUndefined();
  });
});

describe('with the subscription of before alone', () => {
  test.for([
    ['another plan', NEW, [], 'bought', undefined],
    ['another plan, and a payment for it', NEW, [known, own], 'bought', own],
    ['the old plan, and some payment, which may be of before', OLD, [own], 'not_seen', undefined],
    ['the old plan', OLD, [], 'not_seen', undefined],
  ] as const)('%s: %s, %o: %s', async ([, plan, payments, state, expected]) => {
    const account = await openAccount(plan, payments);
    for (const pending_payments of [undefined, null]) {
      const before = { subscription: { plan: OLD }, ...(pending_payments === null && { pending_payments }) };
      const found = await outcomeOf(account.portico, before);
      expect(found.state).toBe(state);
      if (expected) expect(found.payment).toMatchObject(expected);
      else expect(found.payment).toBeUndefined();
    }
  });
});

test('it asks the upstream, for the subscription and the pending payments and nothing else', async () => {
  const { portico, upstream, set } = await openAccount(OLD);
  const before = await portico.getBillingOverview({ sections: ['subscription', 'pending_payments'] });
  expect(upstream.calls).toHaveLength(2);
  set(NEW, []);
  expect((await outcomeOf(portico, before.data)).state).toBe('bought');
  expect(upstream.calls).toHaveLength(4);
});

test.for(['subscription', 'pending_payments'])('a %s that fails is thrown as its problem', async (section) => {
  const { portico, on } = await openAccount(OLD);
  on(legOf(billing, section), json(404, {}));
  const problem = await problemOf(outcomeOf(portico, { subscription: { plan: OLD } }));
  expect([problem.code, problem.section]).toEqual(['not_found', section]);
});

test('an account that was suspended meanwhile is thrown as that', async () => {
  const { portico, on } = await openAccount(OLD);
  on(legOf(billing, 'pending_payments'), json(403, { detail: 'No.', code: 'account_suspended' }));
  expect((await problemOf(outcomeOf(portico, { subscription: { plan: OLD } }))).status).toBe(403);
});
