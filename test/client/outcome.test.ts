import { describe, expect, test } from 'vitest';
import { createClient, outcomeOf } from '../../client/src/index.ts';
import { routes } from '../../client/src/routes.ts';
import { legOf, openOverviews, overviewTable } from '../overviews/helpers.ts';
import { json, type Step } from '../support/scripted-upstream.ts';
import { exampleBody } from '../support/examples.ts';
import { openStandIn, PLAN, problem, problemOf, PURCHASE } from './helpers.ts';

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
  const thrown = await problemOf(outcomeOf(portico, { subscription: { plan: OLD } }));
  expect([thrown.code, thrown.section]).toEqual(['not_found', section]);
});

test('an account that was suspended meanwhile is thrown as that', async () => {
  const { portico, on } = await openAccount(OLD);
  on(legOf(billing, 'pending_payments'), json(403, { detail: 'No.', code: 'account_suspended' }));
  expect((await problemOf(outcomeOf(portico, { subscription: { plan: OLD } }))).status).toBe(403);
});

/** A gateway that has a record of a key, or none; the account is as it was. */
async function openRecord(record: Step | undefined, plan = OLD) {
  const { gateway, clientWith } = await openStandIn();
  const portico = clientWith({ routes });
  const data = { subscription: { plan }, pending_payments: { results: [] } };
  gateway.on('GET /bff/v1/billing-overview', json(200, { data }));
  if (record) gateway.on('GET /bff/v1/outcome', record);
  return { gateway, portico };
}

describe('with its key', () => {
  const before = { subscription: { plan: OLD } };
  const idempotencyKey = 'mine';

  test.for([
    ['is recorded', json(200, { state: 'done', status: 200, at: '2026-01-01T00:00:00Z' }), 'bought'],
    ['is under way', json(200, { state: 'under_way' }), 'under_way'],
    ['has no known end', json(200, { state: 'unknown' }), 'not_seen'],
    ['has no record', problem(404, 'outcome_not_found'), 'not_bought'],
    ['is of an older gateway, which cannot be asked', problem(404, 'unknown_endpoint'), 'not_seen'],
  ] as const)('a purchase that %s and cannot be seen', async ([, record, state]) => {
    const { gateway, portico } = await openRecord(record);
    const found = await outcomeOf(portico, before, { idempotencyKey });
    expect(found).toEqual({ state, subscription: { plan: OLD }, payment: undefined });
    const [asked, looked] = gateway.calls;
    expect([asked!.path, asked!.headers['idempotency-key']]).toEqual(['/bff/v1/outcome', 'mine']);
    expect(looked!.path).toBe('/bff/v1/billing-overview');
    expect(looked!.headers).not.toHaveProperty('idempotency-key');
  });

  test('a purchase that can be seen is bought, whatever the gateway knows', async () => {
    const { portico } = await openRecord(json(200, { state: 'unknown' }), NEW);
    expect((await outcomeOf(portico, before, { idempotencyKey })).state).toBe('bought');
  });

  test('is not asked for where the gateway’s routes have no such call', async () => {
    const { gateway } = await openRecord(undefined);
    const { getOutcome: _, ...older } = routes;
    const portico = createClient({ url: gateway.url, token: 'a', routes: older as typeof routes });
    expect((await outcomeOf(portico, before, { idempotencyKey })).state).toBe('not_seen');
    expect(gateway.calls).toHaveLength(1);
  });

  test('any other problem of that call is thrown', async () => {
    const { portico } = await openRecord(problem(401, 'unauthenticated'));
    expect((await problemOf(outcomeOf(portico, before, { idempotencyKey }))).status).toBe(401);
  });

  test('the problem of a purchase says it', async () => {
    const { gateway, portico } = await openRecord(json(200, { state: 'under_way' }));
    gateway.on(PURCHASE, problem(504, 'upstream_timeout', { outcome: 'unknown' }));
    const thrown = await problemOf(portico.purchasePlan(PLAN));
    expect(thrown.idempotencyKey).toBe(gateway.calls[0]!.headers['idempotency-key']);
    expect((await outcomeOf(portico, before, { idempotencyKey: thrown.idempotencyKey })).state).toBe('under_way');
    expect(gateway.calls[1]!.headers['idempotency-key']).toBe(thrown.idempotencyKey);
  });
});
