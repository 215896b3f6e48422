import { describe, expect, test } from 'vitest';
import { type Input, outcomeOf } from '../../client/src/index.ts';
import { createClock } from '../support/client-clock.ts';
import {
  type Answer,
  BOUGHT,
  gistThrown,
  hold,
  html,
  json,
  lost,
  openStandIn,
  PLAN,
  problem,
  problemBody,
  problemOf,
  PURCHASE,
  settled,
  thrownBy,
  UNKNOWN,
} from './helpers.ts';

const MINUTE = 60_000;
const DONE = json(201, BOUGHT);
const REASON = new Error('left');

type Plan = Input<'purchasePlan'>;

/** A client in a shop that gives these answers, and the keys of the purchases that came. */
function openShop(...answers: Answer[]) {
  const standIn = openStandIn();
  standIn.gateway.on(PURCHASE, ...answers);
  const keys = () => standIn.gateway.callsTo(PURCHASE).map(({ headers }) => headers['idempotency-key']);
  return {
    ...standIn,
    keys,
    /** Which of the purchases are one to the gateway: each is given the number of the first with its key. */
    sames: () => keys().map((key) => keys().indexOf(key) + 1),
    buy: (input: Plan = PLAN, options = {}) => standIn.portico.purchasePlan(input, options),
    fail: (input: Plan = PLAN) => problemOf(standIn.portico.purchasePlan(input)),
  };
}

describe('the key', () => {
  test('stands on each purchase, 1 to 255 visible characters, new for one that is bought anew', async () => {
    const shop = openShop(DONE);
    await shop.buy();
    await shop.buy();
    expect(shop.sames()).toEqual([1, 2]);
    for (const key of shop.keys()) expect(key).toMatch(/^[!-~]{1,255}$/);
  });

  test('is made where there is no crypto too', async () => {
    const clock = createClock({ random: 0.25, more: { crypto: undefined } });
    const { gateway, portico } = openStandIn({}, clock);
    gateway.on(PURCHASE, DONE);
    await portico.purchasePlan(PLAN);
    expect(gateway.calls[0]!.headers['idempotency-key']).toMatch(/^\d{13}-0\.25$/);
  });

  test('of the caller is sent as it is, and such purchases join nothing', async () => {
    const held = hold(DONE);
    const shop = openShop(held.answer);
    const both = ['order-1', 'order-2'].map((idempotencyKey) => shop.buy(PLAN, { idempotencyKey }));
    await shop.gateway.arrived(2);
    held.release();
    await Promise.all(both);
    expect(shop.keys()).toEqual(['order-1', 'order-2']);
  });
});

describe('an equal purchase', () => {
  test('while the first is under way is that one: one call, and one answer', async () => {
    const held = hold(DONE);
    const shop = openShop(held.answer);
    const first = shop.buy();
    await shop.gateway.arrived(1);
    const others = [PLAN, PLAN, { ...PLAN, recaptcha: 'abc' }].map((body) => shop.buy(body));
    held.release();
    const answers = new Set(await Promise.all([first, ...others]));
    expect([...answers]).toEqual([BOUGHT]);
    expect(shop.gateway.calls).toHaveLength(1);
  });

  test('of one that is answered with nothing gets nothing, and the problem of one that failed', async () => {
    const shop = openShop(json(204), problem(402, 'card_declined'));
    expect(await Promise.all([shop.buy(), shop.buy()])).toEqual([undefined, undefined]);
    const [first, second] = await Promise.all([shop.fail(), shop.fail()]);
    expect(second).toBe(first);
    expect([first.code, shop.gateway.calls.length]).toEqual(['card_declined', 2]);
  });

  test.for([
    ['an unknown outcome', UNKNOWN, 1],
    ['no answer', lost, 1],
    ['an answer that is none', html(200), 1],
    ['a 504 of a proxy’s own', json(504, problemBody(504, 'timeout', { retryable: true })), 1],
    ['a 403 of a firewall that has read the answer', html(403), 1],
    ['409 outcome_unknown', problem(409, 'outcome_unknown'), 1],
    ['409 idempotency_in_progress', problem(409, 'idempotency_in_progress', { retryable: true }), 1],
    ['a refusal', problem(402, 'card_declined'), 2],
    ['400, such as that recaptcha is wanted', problem(400, 'validation_error'), 2],
    ['a problem of before it was sent', problem(503, 'overloaded'), 2],
  ] as const)('after %s is the same one to the gateway, or another', async ([, answer, number]) => {
    const shop = openShop(answer, DONE);
    await shop.fail();
    await shop.buy();
    expect(shop.sames()).toEqual([1, number]);
  });

  test.for([
    ['recaptcha', { ...PLAN, recaptcha: 'abc' }, 1],
    ['the order of members', { term: 'monthly', proxy_countries: { US: 5 }, proxy_type: 'shared' }, 1],
    ['a member', { ...PLAN, term: 'yearly' }, 2],
    ['a member more', { ...PLAN, x_new: 1 }, 2],
    ['a count deep inside', { ...PLAN, proxy_countries: { US: 6 } }, 2],
  ] as const)('that differs by %s is the same one to the gateway, or another', async ([, other, number]) => {
    const shop = openShop(UNKNOWN, DONE);
    await shop.fail();
    await shop.buy(other);
    expect(shop.sames()).toEqual([1, number]);
    expect(JSON.parse(shop.gateway.calls[1]!.body)).toEqual(other);
  });

  test('keeps its key after an unknown outcome when the repeat is refused', async () => {
    const shop = openShop(UNKNOWN, problem(429, 'rate_limited'), problem(503, 'overloaded'), DONE);
    for (let refused = 0; refused < 3; refused += 1) await shop.fail();
    await shop.buy();
    expect(shop.sames()).toEqual([1, 1, 1, 1]);
  });

  test('of another account is none, after an unknown outcome', async () => {
    const shop = openShop(UNKNOWN);
    const tokens = ['one', 'two', 'one', 'two'].flatMap((token) => [token, token]); // to compare with, and to send
    const portico = shop.clientWith({ token: () => tokens.shift() });
    for (let bought = 0; bought < 4; bought += 1) await problemOf(portico.purchasePlan(PLAN));
    const senders = shop.gateway.calls.map(({ headers }) => headers['authorization']?.slice(6));
    expect(senders).toEqual(['one', 'two', 'one', 'two']);
    expect(shop.sames()).toEqual([1, 2, 1, 2]);
  });
});

const AGAIN = problem(409, 'outcome_unknown');

/** Answers, the time that passes after each but the last, and what each purchase is to the gateway. */
const TIMES = [
  ['lasts a minute, less a millisecond', [UNKNOWN, DONE], [MINUTE - 1], [1, 1]],
  ['is then over', [UNKNOWN, DONE], [MINUTE], [1, 2]],
  ['is not prolonged by a 409: this time nothing was sent', [UNKNOWN, AGAIN, DONE], [MINUTE - 1, 1], [1, 1, 3]],
  ['begins anew with each unknown outcome', [UNKNOWN, UNKNOWN, DONE], [MINUTE - 1, MINUTE - 1], [1, 1, 1]],
  ['is over with a known one', [UNKNOWN, DONE, DONE], [1, 1], [1, 1, 3]],
] as const;

describe('the minute after an unknown outcome', () => {
  test.for(TIMES)('%s', async ([, answers, gaps, expected]) => {
    const shop = openShop(...answers);
    for (const ms of [...gaps, 0]) {
      await shop.buy().catch(() => undefined);
      shop.clock.pass(ms);
    }
    expect(shop.sames()).toEqual(expected);
  });

  test('begins when the answer comes, not when the purchase is sent', async () => {
    const held = hold(UNKNOWN);
    const shop = openShop(held.answer, DONE);
    const first = shop.fail();
    await shop.gateway.arrived(1);
    shop.clock.pass(MINUTE);
    held.release();
    await first;
    shop.clock.pass(MINUTE - 1);
    await shop.buy();
    expect(shop.sames()).toEqual([1, 1]);
  });
});

/** A purchase that is sent, and has no answer before it is released. */
async function begun() {
  const held = hold(DONE);
  const shop = openShop(held.answer);
  const controller = new AbortController();
  const first = shop.buy(PLAN, { signal: controller.signal });
  await shop.gateway.arrived(1);
  return { ...shop, ...held, first, signal: controller.signal, abort: () => controller.abort(REASON) };
}

describe('an abort', () => {
  test('of the first is one of those that have joined it too; the next one has the same key', async () => {
    const shop = await begun();
    const joined = thrownBy(shop.buy());
    await settled();
    shop.abort();
    expect([await thrownBy(shop.first), await joined]).toEqual([REASON, REASON]);
    shop.release();
    expect(await shop.buy()).toEqual(BOUGHT);
    expect(shop.sames()).toEqual([1, 1]);
  });

  test('of one that has joined is none of the first', async () => {
    const shop = await begun();
    const controller = new AbortController();
    const joined = thrownBy(shop.buy(PLAN, { signal: controller.signal }));
    await settled();
    controller.abort(REASON);
    expect(await joined).toBe(REASON);
    expect(await thrownBy(shop.buy(PLAN, { signal: AbortSignal.abort(REASON) }))).toBe(REASON); // before it joins
    shop.release();
    expect(await shop.first).toEqual(BOUGHT);
    expect(shop.keys()).toHaveLength(1);
  });
});

const BILLING = 'GET /bff/v1/billing-overview';
const RECORD = 'GET /bff/v1/outcome';
const [OLD, NEW] = [1, 2];

const payment = (id: number, plan: number, is_renewal = false) => ({ id, plan, is_renewal });
const known = payment(10, OLD);
const renewal = payment(11, OLD, true);
const own = payment(12, NEW);

type Payments = readonly ReturnType<typeof payment>[];
const accountOf = (plan: number, results: Payments = []) => ({ subscription: { plan }, pending_payments: { results } });

/** An account that is now so, and what the gateway knows of the key. */
function openAccount(plan: number, payments: Payments = [], record?: Answer) {
  const standIn = openStandIn();
  standIn.gateway.on(BILLING, json(200, { data: accountOf(plan, payments) }));
  if (record) standIn.gateway.on(RECORD, record);
  return standIn;
}

const beforeAlone = { subscription: { plan: OLD } };

test.for([
  ['another plan', accountOf(OLD, [known]), NEW, [], 'bought', undefined],
  ['another plan, and a payment of its own', accountOf(OLD, [known]), NEW, [known, own], 'bought', own],
  ['another payment', accountOf(OLD, [known]), OLD, [known, own], 'begun', own],
  ['nothing new', accountOf(OLD, [known]), OLD, [known], 'not_seen', undefined],
  ['the payment of before gone', accountOf(OLD, [known]), OLD, [], 'not_seen', undefined],
  ['another payment that is a renewal', accountOf(OLD, [known]), OLD, [known, renewal], 'not_seen', undefined],
  ['another plan, and a renewal', accountOf(OLD, [known]), NEW, [renewal], 'bought', undefined],
  ['another plan, by the subscription alone', beforeAlone, NEW, [own], 'bought', undefined],
  [
    'another plan, payments of before unread',
    { ...beforeAlone, pending_payments: null },
    NEW,
    [own],
    'bought',
    undefined,
  ],
  ['some payment, which may be of before', beforeAlone, OLD, [own], 'not_seen', undefined],
] as const)('what became of a purchase: %s', async ([, before, plan, payments, state, expected]) => {
  const { portico } = openAccount(plan, payments);
  const found = await outcomeOf(portico, before);
  expect(found).toEqual({ state, subscription: { plan }, payment: expected });
});

test('of another account nothing is said', async () => {
  const { gateway, portico } = openStandIn();
  gateway.on(BILLING, json(200, { data: { ...accountOf(NEW), subscription: { id: 8, plan: NEW } } }));
  const before = { subscription: { id: 7, plan: OLD } };
  expect(await gistThrown(outcomeOf(portico, before))).toBe('account_changed 0');
});

test('it asks once, for a fresh subscription and fresh pending payments, and nothing else', async () => {
  const { gateway, portico } = openAccount(OLD);
  await outcomeOf(portico, beforeAlone);
  expect(gateway.calls.map(({ target }) => target)).toEqual([
    '/bff/v1/billing-overview?sections=subscription%2Cpending_payments',
  ]);
  expect(gateway.calls[0]!.headers).toMatchObject({ 'cache-control': 'no-cache', prefer: 'handling=strict' });
});

test.for([
  ['a section that fails', problem(404, 'not_found', { section: 'pending_payments' }), 'not_found'],
  ['an account that was suspended meanwhile', problem(403, 'account_suspended'), 'account_suspended'],
] as const)('%s is thrown as its problem', async ([, answer, code]) => {
  const { gateway, portico } = openStandIn();
  gateway.on(BILLING, answer);
  expect((await problemOf(outcomeOf(portico, beforeAlone))).code).toBe(code);
});

describe('with its key', () => {
  const idempotencyKey = 'mine';

  test.for([
    ['is recorded', json(200, { state: 'done', status: 200, at: '2026-01-01T00:00:00Z' }), 'bought'],
    ['is under way', json(200, { state: 'under_way' }), 'under_way'],
    ['has no known end', json(200, { state: 'unknown' }), 'not_seen'],
    ['has no record', problem(404, 'outcome_not_found'), 'not_bought'],
    ['is of an older gateway, which cannot be asked', problem(404, 'unknown_endpoint'), 'not_seen'],
  ] as const)('a purchase that %s and cannot be seen', async ([, record, state]) => {
    const { gateway, portico } = openAccount(OLD, [], record);
    expect((await outcomeOf(portico, beforeAlone, { idempotencyKey })).state).toBe(state);
    const asked = gateway.calls.map(({ path, headers }) => [path, headers['idempotency-key']]);
    expect(asked).toEqual([
      ['/bff/v1/outcome', 'mine'],
      ['/bff/v1/billing-overview', undefined],
    ]);
  });

  test('the problem of a purchase says it', async () => {
    const { gateway, portico } = openAccount(OLD, [], json(200, { state: 'under_way' }));
    gateway.on(PURCHASE, UNKNOWN);
    const thrown = await problemOf(portico.purchasePlan(PLAN));
    const { state } = await outcomeOf(portico, beforeAlone, { idempotencyKey: thrown.idempotencyKey });
    expect(state).toBe('under_way');
    const [bought, asked] = gateway.calls.map(({ headers }) => headers['idempotency-key']);
    expect([bought, asked]).toEqual([thrown.idempotencyKey, thrown.idempotencyKey]);
  });
});
