import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../client/src/index.ts';
import { barrier, hold, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import {
  BOUGHT,
  gistOf,
  openStandIn,
  passPauses,
  PLAN,
  problem,
  problemBody,
  problemOf,
  PURCHASE,
  SUBSCRIPTION,
  thrownBy,
} from './helpers.ts';

const MINUTE = 60_000;
const UNKNOWN = problem(504, 'upstream_timeout', { outcome: 'unknown' });

/** A client in a shop that gives these answers, and the keys of the purchases that came. */
async function openShop(...answers: Step[]) {
  const { gateway, ...rest } = await openStandIn();
  gateway.on(PURCHASE, ...answers);
  const keys = () => gateway.calls.map(({ headers }) => headers['idempotency-key']);
  return { ...rest, gateway, keys };
}

type Shop = Awaited<ReturnType<typeof openShop>>;

const buyTwice = async ({ portico }: Shop) => {
  await portico.purchasePlan(PLAN).catch(() => undefined);
  await portico.purchasePlan(PLAN).catch(() => undefined);
};

/** Whether the two that were sent are one to the gateway. */
const isOne = ({ keys }: Shop) => {
  const [first, second, ...others] = keys();
  expect([first, second, others]).toEqual([expect.any(String), expect.any(String), []]);
  return first === second;
};

describe('the key', () => {
  test('stands on each purchase, 1 to 255 visible characters, new for one that is bought anew', async () => {
    const shop = await openShop(json(201, BOUGHT));
    await buyTwice(shop);
    expect(isOne(shop)).toBe(false);
    for (const key of shop.keys()) expect(key).toMatch(/^[!-~]{1,255}$/);
  });

  test('stands on no other write', async () => {
    const { gateway, portico } = await openStandIn();
    gateway.on(() => true, json(200, {}));
    await portico.createApiKey({ title: 'mine' });
    await portico.updateReferralConfig({ mode: 'credits' });
    for (const { headers } of gateway.calls) expect(headers).not.toHaveProperty('idempotency-key');
  });

  test('is one for all tries', async () => {
    passPauses();
    const shop = await openShop(problem(503, 'a_code', { retryable: true }));
    await problemOf(shop.portico.purchasePlan(PLAN));
    expect(shop.keys()).toHaveLength(3);
    expect(new Set(shop.keys()).size).toBe(1);
  });

  test('is made where there is no crypto too', async () => {
    vi.stubGlobal('crypto', undefined);
    onTestFinished(() => void vi.unstubAllGlobals());
    const keys: unknown[] = [];
    const fetch = (_: unknown, init?: RequestInit) => {
      keys.push(new Headers(init?.headers).get('Idempotency-Key'));
      return Promise.resolve(Response.json(BOUGHT));
    };
    const portico = createClient({ fetch, token: 'a' });
    await portico.purchasePlan(PLAN);
    await portico.purchasePlan(PLAN);
    expect(keys).toEqual([expect.stringMatching(/^[!-~]{8,255}$/), expect.stringMatching(/^[!-~]{8,255}$/)]);
    expect(new Set(keys).size).toBe(2);
  });

  test('of the caller is sent as it is, and such purchases join nothing', async () => {
    const gate = barrier();
    const shop = await openShop(reply(hold(gate), json(201, BOUGHT)));
    const both = ['order-1', 'order-2'].map((idempotencyKey) => shop.portico.purchasePlan(PLAN, { idempotencyKey }));
    await gate.count(2);
    gate.release();
    await Promise.all(both);
    expect(new Set(shop.keys())).toEqual(new Set(['order-1', 'order-2']));
  });
});

describe('an equal purchase', () => {
  test('while the first is under way is that one: one call, and both get its answer', async () => {
    const gate = barrier();
    const shop = await openShop(reply(hold(gate), json(201, BOUGHT)));
    const first = shop.portico.purchasePlan(PLAN);
    await gate.reached;
    const others = [PLAN, { ...PLAN, recaptcha: 'abc' }].map((body) => shop.portico.purchasePlan(body));
    gate.release();
    const [one, ...joined] = await Promise.all([first, ...others]);
    expect(one).toEqual(BOUGHT);
    for (const answer of joined) expect(answer).toEqual(one);
    expect(shop.gateway.calls).toHaveLength(1);
  });

  test('in the same moment is that one too', async () => {
    const shop = await openShop(json(201, BOUGHT));
    const answers = await Promise.all(Array.from({ length: 5 }, () => shop.portico.purchasePlan(PLAN)));
    expect(answers).toEqual(Array(5).fill(BOUGHT));
    expect(new Set(answers).size).toBe(5); // what one caller does to it is nobody else's
    expect(shop.gateway.calls).toHaveLength(1);
  });

  test('of one that is answered with nothing gets nothing too', async () => {
    const shop = await openShop(json(204));
    const answers = await Promise.all([1, 2].map(() => shop.portico.purchasePlan(PLAN)));
    expect([answers, shop.gateway.calls.length]).toEqual([[undefined, undefined], 1]);
  });

  test('gets the problem of the one that it has joined', async () => {
    const shop = await openShop(problem(402, 'card_declined'));
    const [first, second] = await Promise.all([1, 2].map(() => problemOf(shop.portico.purchasePlan(PLAN))));
    expect(second).toBe(first);
    expect([first!.code, shop.gateway.calls.length]).toEqual(['card_declined', 1]);
  });

  test.for([
    ['an unknown outcome', UNKNOWN],
    ['no answer', reset()],
    ['an answer that is none', json(200, '<html>')],
    ['a 504 of a proxy’s own, in the shape of a problem', json(504, problemBody(504, 'timeout', { retryable: true }))],
    ['a 403 of a firewall that has read the answer', json(403, '<html>')],
    ['409 outcome_unknown', problem(409, 'outcome_unknown')],
    ['409 idempotency_in_progress', problem(409, 'idempotency_in_progress', { retryable: true })],
  ] as const)('after %s has the same key', async ([, answer]) => {
    const shop = await openShop(answer, json(201, BOUGHT));
    await buyTwice(shop);
    expect(isOne(shop)).toBe(true);
  });

  test.for([
    ['a refusal', problem(402, 'card_declined')],
    ['400, such as that recaptcha is wanted', problem(400, 'validation_error')],
    ['a problem of before it was sent', problem(503, 'overloaded')],
  ] as const)('after %s has a key of its own', async ([, answer]) => {
    const shop = await openShop(answer, json(201, BOUGHT));
    await buyTwice(shop);
    expect(isOne(shop)).toBe(false);
  });

  test('after an unknown outcome has the same key with and without recaptcha', async () => {
    const shop = await openShop(UNKNOWN, json(201, BOUGHT));
    await problemOf(shop.portico.purchasePlan(PLAN));
    await shop.portico.purchasePlan({ ...PLAN, recaptcha: 'abc' });
    expect(isOne(shop)).toBe(true);
    expect(JSON.parse(shop.gateway.calls[1]!.body)).toEqual({ ...PLAN, recaptcha: 'abc' });
  });

  test('is one whose members stand in another order too, however deep', async () => {
    const shop = await openShop(UNKNOWN, json(201, BOUGHT));
    const countries = { US: 5, DE: 2 };
    await problemOf(shop.portico.purchasePlan({ ...PLAN, proxy_countries: countries }));
    await shop.portico.purchasePlan({ term: 'monthly', proxy_countries: { DE: 2, US: 5 }, proxy_type: 'shared' });
    expect(isOne(shop)).toBe(true);
    await shop.portico.purchasePlan({ ...PLAN, proxy_countries: countries, x_list: [1, 2] });
    await shop.portico.purchasePlan({ ...PLAN, proxy_countries: countries, x_list: [2, 1] });
    expect(new Set(shop.keys()).size).toBe(3);
  });

  test('of another client has a key of its own', async () => {
    const shop = await openShop(UNKNOWN);
    await problemOf(shop.portico.purchasePlan(PLAN));
    await problemOf(shop.clientWith({}).purchasePlan(PLAN));
    expect(isOne(shop)).toBe(false);
  });

  test.for([
    ['another body', { ...PLAN, term: 'yearly' }],
    ['a member more', { ...PLAN, x_new: 1 }],
    ['another count deep inside', { ...PLAN, proxy_countries: { US: 6 } }],
  ] as const)('is none with %s', async ([, other]) => {
    const shop = await openShop(UNKNOWN);
    await problemOf(shop.portico.purchasePlan(PLAN));
    await problemOf(shop.portico.purchasePlan(other));
    expect(isOne(shop)).toBe(false);
  });

  test('of another account is none, at once and after an unknown outcome', async () => {
    const { gateway, clientWith } = await openStandIn();
    gateway.on(PURCHASE, UNKNOWN);
    const tokens = ['one', 'two', 'one', 'two'].flatMap((token) => [token, token]); // to compare with, and to send
    const portico = clientWith({ token: () => tokens.shift() });
    for (let bought = 0; bought < 4; bought += 1) await problemOf(portico.purchasePlan(PLAN));
    const seen = gateway.calls.map(({ headers }) => [headers['authorization'], headers['idempotency-key']] as const);
    expect(seen.map(([account]) => account)).toEqual(['Token one', 'Token two', 'Token one', 'Token two']);
    const [a, b, c, d] = seen.map(([, key]) => key);
    expect([a === b, a === c, b === d]).toEqual([false, true, true]);
  });

  test.for(['Authorization', 'cookie'])('of the account of another %s of the call is none', async (name) => {
    const gate = barrier();
    const shop = await openShop(reply(hold(gate), json(201, BOUGHT)));
    const portico = shop.clientWith({ token: undefined }); // with a key a cookie counts for nothing
    const buy = (account: string) => portico.purchasePlan(PLAN, { headers: { [name]: account } });
    const all = ['one', 'two', 'one'].map(buy);
    await gate.count(2);
    gate.release();
    await Promise.all(all);
    expect(shop.gateway.calls.map(({ headers }) => headers[name.toLowerCase()])).toEqual(['one', 'two']);
    expect(isOne(shop)).toBe(false);
  });
});

test('a purchase of whoever has signed out is not joined by whoever signs in', async () => {
  const gate = barrier();
  const shop = await openShop(reply(hold(gate), json(201, BOUGHT)));
  shop.gateway.on('DELETE /bff/v1/session', json(204));
  shop.gateway.on('POST /bff/v1/session', json(201, { authenticated: true }));
  const page = shop.clientWith({ token: undefined });
  const first = page.purchasePlan(PLAN);
  await gate.reached;
  await page.deleteSession();
  await page.createSession({ token: 'of another account' });
  const second = page.purchasePlan(PLAN);
  await gate.count(2);
  gate.release();
  await Promise.all([first, second]);
});

const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);

describe('the minute after an unknown outcome', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
    return () => void vi.useRealTimers();
  });

  test.for([
    ['within it the key is the same', MINUTE - 1, true],
    ['after it there is another', MINUTE, false],
  ] as const)('%s', async ([, ms, expected]) => {
    const shop = await openShop(UNKNOWN, json(201, BOUGHT));
    await problemOf(shop.portico.purchasePlan(PLAN));
    pass(ms);
    await shop.portico.purchasePlan(PLAN);
    expect(isOne(shop)).toBe(expected);
  });

  test('begins when the answer comes, not when the purchase is sent', async () => {
    const gate = barrier();
    const shop = await openShop(reply(hold(gate), UNKNOWN), json(201, BOUGHT));
    const first = problemOf(shop.portico.purchasePlan(PLAN));
    await gate.reached;
    pass(MINUTE);
    gate.release();
    await first;
    pass(MINUTE - 1);
    await shop.portico.purchasePlan(PLAN);
    expect(isOne(shop)).toBe(true);
  });

  test('is not prolonged by asking: a 409 says that this time nothing was sent', async () => {
    const shop = await openShop(UNKNOWN, problem(409, 'outcome_unknown'), json(201, BOUGHT));
    await problemOf(shop.portico.purchasePlan(PLAN));
    pass(MINUTE - 1);
    await problemOf(shop.portico.purchasePlan(PLAN));
    pass(1);
    await shop.portico.purchasePlan(PLAN);
    const [a, b, c] = shop.keys();
    expect([a === b, b === c]).toEqual([true, false]);
  });

  test('begins anew with each unknown outcome, and is over with a known one', async () => {
    const shop = await openShop(UNKNOWN, UNKNOWN, json(201, BOUGHT), json(201, BOUGHT));
    await problemOf(shop.portico.purchasePlan(PLAN));
    pass(MINUTE - 1);
    await problemOf(shop.portico.purchasePlan(PLAN));
    pass(MINUTE - 1);
    await shop.portico.purchasePlan(PLAN);
    await shop.portico.purchasePlan(PLAN);
    const [a, b, c, d] = shop.keys();
    expect([a === b, b === c, c === d]).toEqual([true, true, false]);
  });
});

describe('an abort', () => {
  const REASON = new Error('left');

  /** A purchase that is sent, and has no answer before the gate is released. */
  async function begun() {
    const gate = barrier();
    const shop = await openShop(reply(hold(gate), json(201, BOUGHT)));
    const controller = new AbortController();
    const first = shop.portico.purchasePlan(PLAN, { signal: controller.signal });
    await gate.reached;
    shop.gateway.on(SUBSCRIPTION, json(200, {}));
    return {
      ...shop,
      gate,
      first,
      abort: () => controller.abort(REASON),
      /** Resolves when those have joined that were asked for before. */
      joined: () => shop.portico.getSubscription(),
      keys: () => shop.keys().filter(Boolean),
    };
  }

  test('of a purchase gives an equal one afterwards the same key', async () => {
    const shop = await begun();
    shop.abort();
    expect(await thrownBy(shop.first)).toBe(REASON);
    shop.gate.release();
    expect(await shop.portico.purchasePlan(PLAN)).toEqual(BOUGHT);
    expect(isOne(shop)).toBe(true);
  });

  test('of the first is none of one that has joined it: that one goes on with the same key', async () => {
    const shop = await begun();
    const joined = [1, 2].map(() => shop.portico.purchasePlan(PLAN));
    await shop.joined();
    shop.abort();
    expect(await thrownBy(shop.first)).toBe(REASON);
    shop.gate.release();
    const [one, other] = await Promise.all(joined);
    expect(one).toEqual(BOUGHT);
    expect(other).toEqual(one);
    expect(isOne(shop)).toBe(true);
  });

  test('of one that has joined is none of the first', async () => {
    const shop = await begun();
    const controller = new AbortController();
    const joined = thrownBy(shop.portico.purchasePlan(PLAN, { signal: controller.signal }));
    await shop.joined();
    controller.abort(REASON);
    expect(await joined).toBe(REASON);
    shop.gate.release();
    expect(await shop.first).toEqual(BOUGHT);
    expect(shop.keys()).toHaveLength(1);
  });

  test('is listened for no longer than the purchase lasts', async () => {
    const portico = createClient({ fetch: () => Promise.resolve(Response.json(BOUGHT)), token: 'a' });
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')];
    await Promise.all([1, 2].map(() => portico.purchasePlan(PLAN, { signal })));
    await new Promise(setImmediate);
    expect(added.mock.calls.length).toBeGreaterThan(0);
    expect(removed).toHaveBeenCalledTimes(added.mock.calls.length);
  });

  test('of both by one signal ends both, and nothing more is sent', async () => {
    const gate = barrier();
    const shop = await openShop(hold(gate));
    const controller = new AbortController();
    const both = [1, 2].map(() => thrownBy(shop.portico.purchasePlan(PLAN, { signal: controller.signal })));
    await gate.reached;
    controller.abort(REASON);
    expect(await Promise.all(both)).toEqual([REASON, REASON]);
    expect(shop.gateway.calls).toHaveLength(1);
  });

  test('before it joins is heard', async () => {
    const shop = await begun();
    expect(await thrownBy(shop.portico.purchasePlan(PLAN, { signal: AbortSignal.abort(REASON) }))).toBe(REASON);
    shop.gate.release();
    expect(await shop.first).toEqual(BOUGHT);
  });
});

test('a purchase that was refused says so by field', async () => {
  const shop = await openShop(
    problem(400, 'validation_error', { errors: [{ code: 'required', message: 'Fill it in.', field: 'recaptcha' }] }),
  );
  const thrown = await problemOf(shop.portico.purchasePlan(PLAN));
  expect([gistOf(thrown), thrown.errors['recaptcha']?.[0]?.message]).toEqual(['validation_error 400', 'Fill it in.']);
});
