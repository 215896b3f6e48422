import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openDoubles, openFleet } from '../../support/fleet.ts';
import { secret } from '../../support/secrets.ts';

const HIT = /^portico; hit; ttl=[1-9]/;
const SUBSCRIPTION = '/api/v2/subscription/';

const open = (env = {}) => {
  const fleet = openDoubles(env);
  const { shelf } = fleet.a;
  /** What the store is asked meanwhile through `a` before it has answered: a copy is kept behind the answer. */
  const askedFor = async (act: () => Promise<unknown>) => {
    const from = shelf.calls.length;
    await act();
    return shelf.calls.slice(from).filter((method) => method !== 'keep');
  };
  return { ...fleet, askedFor, token: secret() };
};

describe(says('**A read** of what may be cached, or by cookie, asks the store once'), () => {
  const batch = { requests: ['1', '2', '3'].map((id) => ({ id, path: `/api/v2/payment/transaction/${id}/` })) };

  test.each([
    ['an endpoint', SUBSCRIPTION, undefined],
    ['an overview', '/bff/v1/account-overview', undefined],
    ['a batch', '/bff/v1/batch', batch],
  ])('%s, from the upstream, from its own copies and from those of others', async (_, path, body) => {
    const { a, b, askedFor, token } = open();
    await a.call(SUBSCRIPTION, { token }); // of a credential that was not accepted yet the first of a batch goes alone
    const read = () => a.call(path, { token, body });
    expect(await askedFor(read)).toEqual(['read']);
    expect(await askedFor(read)).toEqual(['read']);
    const other = secret();
    for (const one of [b, a]) await one.call(SUBSCRIPTION, { token: other });
    await b.call(path, { token: other, body });
    expect(await askedFor(() => a.call(path, { token: other, body }))).toEqual(['read']);
  });

  test('by cookie, of what is cached and of what is not', async () => {
    const { a, askedFor, token } = open({ SESSIONS: 'true' });
    const headers = { 'sec-fetch-site': 'same-origin' };
    const signedIn = await a.call('/bff/v1/session', { body: { token }, headers, token: null });
    const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!;
    await a.idle();
    for (const id of ['getApiKey', 'getSubscription'] as const)
      expect(await askedFor(() => a.ask(id, { token: null, headers: { ...headers, cookie } }))).toEqual(['read']);
  });
});

test(says('for at most 200 ms; without the store it goes to the upstream, and copies are not used'), async () => {
  const { a, upstream, token } = open();
  await a.ask('getSubscription', { token });
  upstream.change(token);
  a.shelf.hold('read');
  const reading = a.ask('getSubscription', { token });
  await a.pass(0.15);
  expect(upstream.callsOf(token)).toHaveLength(1);
  await a.pass(0.05);
  expect(await reading).toMatchObject({ version: 2, cache: 'portico; fwd=miss' });
  a.shelf.isAway = true;
  expect(await a.ask('getSubscription', { token })).toMatchObject({ version: 2, cache: 'portico; fwd=miss' });
  a.shelf.isAway = false;
  expect(await a.ask('getSubscription', { token })).toMatchObject({ version: 1, cache: expect.stringMatching(HIT) });
});

describe(says('What is never cached asks nobody, but for a new grant of its limit.'), () => {
  test('without a limit', async () => {
    const { a, askedFor, token } = open();
    for (const id of ['getApiKey', 'createApiKey'] as const)
      expect(await askedFor(() => a.ask(id, { token }))).toEqual([]);
  });

  test('with one: the first request of a minute, then one for an eighth of what is left', async () => {
    const { a, token } = open({ RATE_LIMIT_PER_MINUTE: '81' });
    const asked: number[] = [];
    for (let n = 1; n <= 20; n++) {
      expect((await a.ask('getApiKey', { token })).headers.get('RateLimit')).toMatch(`r=${81 - n};`);
      asked.push(a.shelf.times('count'));
    }
    expect(asked).toEqual([1, ...Array.from({ length: 10 }, () => 2), ...Array.from({ length: 8 }, () => 3), 4]);
  });
});

describe.each([3_600_000, -3_600_000])(
  `${says('the promises of sections 5, 7 and 8 hold')}: clocks %i ms apart`,
  (ms) => {
    test('a copy is of one age, and each sees the other write', async () => {
      const { a, b, upstream, token } = open();
      b.setClock(ms);
      await a.ask('getReferralConfig', { token });
      await a.pass(10);
      const copy = await b.ask('getReferralConfig', { token });
      expect([copy.cache, copy.headers.get('Age')]).toEqual(['portico; hit; ttl=20', '10']);
      for (const [write, read] of [
        [a, b],
        [b, a],
      ] as const) {
        await write.ask('updateReferralConfig', { token });
        expect((await read.ask('getReferralConfig', { token })).version).toBe(upstream.versionOf(token));
      }
    });

    test('a purchase under way is under way as long', async () => {
      const { a, b, upstream, token } = open();
      b.setClock(ms);
      upstream.next('purchasePlan', 'hang');
      const buying = b.ask('purchasePlan', { token, key: 'key' });
      await upstream.arrived('purchasePlan');
      expect((await a.ask('purchasePlan', { token, key: 'key' })).code).toBe('idempotency_in_progress');
      await a.pass(10);
      expect((await buying).json).toMatchObject({ outcome: 'unknown' });
      expect((await a.ask('purchasePlan', { token, key: 'key' })).code).toBe('outcome_unknown');
    });
  },
);

const LIMIT = 50;

const passed = (answers: readonly { readonly status: number }[]) => {
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
  return answers.filter(({ status }) => status === 200).length;
};

describe(says("A limit is the fleet's and never exceeded"), () => {
  test('one after the other, through each in turn, and anew after its minute', async () => {
    const { instances, clock, upstream } = await openFleet({ RATE_LIMIT_PER_MINUTE: String(LIMIT) });
    const token = secret();
    for (let minute = 0; minute < 2; minute++) {
      const answers = [];
      for (let n = 0; n < 2 * LIMIT; n++) answers.push(await instances[n % 2]!.ask('getApiKey', { token }));
      expect(passed(answers)).toBeLessThanOrEqual(LIMIT);
      expect(passed(answers)).toBeGreaterThan(0.7 * LIMIT); // or it was reached early
      await clock.pass(120);
    }
    expect(upstream.callsOf(token).length).toBeLessThanOrEqual(2 * LIMIT);
  });

  test(
    says('it may be reached early by what other instances have been granted (an eighth of what is left at a time)'),
    async () => {
      const { instances } = openDoubles({ RATE_LIMIT_PER_MINUTE: '17' });
      const [a, b] = [instances[0]!, instances[1]!];
      const token = secret();
      for (const one of [a, a]) await one.ask('getApiKey', { token }); // 1, and 2 of the 16 that are left
      const answers = [];
      for (let n = 0; n < 16; n++) answers.push(await b.ask('getApiKey', { token }));
      expect(passed(answers)).toBe(14);
      expect((await a.ask('getApiKey', { token })).status).toBe(200); // which was granted
    },
  );
});

test(says('Without the store each counts for itself.'), async () => {
  const { instances } = openDoubles({ RATE_LIMIT_PER_MINUTE: '4' });
  const token = secret();
  for (const one of instances) {
    one.shelf.isAway = true;
    const statuses = [];
    for (let n = 0; n < 5; n++) statuses.push((await one.ask('getApiKey', { token })).status);
    expect(statuses).toEqual([200, 200, 200, 200, 429]);
  }
});
