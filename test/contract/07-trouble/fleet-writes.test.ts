import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import type { Method } from '../../support/fake-shelf.ts';
import { openDoubles } from '../../support/fleet.ts';
import { secret } from '../../support/secrets.ts';
import { answer } from '../../support/upstream.ts';

const STORED = 'portico; fwd=miss; stored';
const NOT_KEPT = 'portico; fwd=miss';

const open = () => ({ ...openDoubles(), token: secret(), key: secret() });

const WRITES = [
  ['updateReferralConfig', undefined],
  ['createApiKey', 'key'],
  ['purchasePlan', undefined],
  ['purchasePlan', 'key'],
] as const;

describe(says('**A write** that touches what is cached, has a key, or buys needs the store'), () => {
  describe(says('503 before anything is sent where it does not answer within a second'), () => {
    test.each(WRITES)('%s with %s', async (id, key) => {
      const { a, upstream, token } = open();
      const refused = { status: 503, code: 'store_unavailable', json: { retryable: true } };
      a.shelf.isAway = true;
      expect(await a.ask(id, { token, ...(key && { key }) })).toMatchObject(refused);
      a.shelf.isAway = false;
      a.shelf.hold('read');
      const asking = a.ask(id, { token, ...(key && { key }) });
      await a.pass(1);
      expect(await asking).toMatchObject(refused);
      expect((await asking).headers.get('Retry-After')).toBe('1');
      expect(upstream.callsOf(token)).toEqual([]);
    });
  });

  test('others need none', async () => {
    const { a, token } = open();
    a.shelf.isAway = true;
    for (const id of ['createApiKey', 'startIdVerification'] as const)
      expect((await a.ask(id, { token })).status).toBeLessThan(300);
  });
});

const asked = async (id: 'purchasePlan' | 'updateReferralConfig', ...keys: (string | undefined)[]) => {
  const { a, token } = open();
  const all: (readonly Method[])[] = [];
  for (const key of keys) {
    const from = a.shelf.calls.length;
    expect((await a.ask(id, { token, ...(key && { key }) })).status).toBeLessThan(300);
    all.push(a.shelf.calls.slice(from));
  }
  return all;
};

describe(says('It is announced in the round trip that takes its key'), () => {
  test('a purchase with a key: read and swap at its beginning and at its end, and its replay reads', async () => {
    expect(await asked('purchasePlan', 'key', 'key')).toEqual([['read', 'swap', 'read', 'swap'], ['read']]);
  });

  test('a write without: by the note that was seen last', async () => {
    const [first, second] = await asked('updateReferralConfig', undefined, undefined);
    expect([first, second]).toEqual([
      ['read', 'swap', 'swap'],
      ['swap', 'swap'],
    ]);
  });
});

describe(says('nothing that it touches is answered from a copy or kept'), () => {
  test('from then until it is over', async () => {
    const { a, b, upstream, token } = open();
    for (const one of [a, b])
      for (const id of ['getReferralConfig', 'getSubscription'] as const) await one.ask(id, { token });
    const held = upstream.hold('updateReferralConfig');
    const writing = a.ask('updateReferralConfig', { token });
    await held.call;
    for (const one of [a, b, a, b]) expect((await one.ask('getReferralConfig', { token })).cache).toBe(NOT_KEPT);
    for (const one of [a, b]) expect((await one.ask('getSubscription', { token })).cache).toMatch('hit'); // it leaves that alone
    held.release();
    await writing;
    expect(await b.ask('getReferralConfig', { token })).toMatchObject({ version: 2, cache: STORED });
    expect(await a.ask('getReferralConfig', { token })).toMatchObject({
      version: 2,
      cache: expect.stringMatching('hit'),
    });
  });

  test(says("or its request's time and 60 s have passed"), async () => {
    const { a, b, upstream, token } = open();
    await b.ask('getReferralConfig', { token });
    const held = upstream.hold('updateReferralConfig');
    void a.ask('updateReferralConfig', { token });
    await held.call;
    a.shelf.isDead = true;
    await b.pass(69);
    expect((await b.ask('getReferralConfig', { token })).cache).toBe(NOT_KEPT);
    upstream.change(token); // it is carried out late
    await b.pass(2);
    expect(await b.ask('getReferralConfig', { token })).toMatchObject({ version: 2, cache: STORED });
  });

  test('also where its end comes late: its answer waits 200 ms at most', async () => {
    const { a, b, upstream, token } = open();
    for (const one of [a, b]) await one.ask('getReferralConfig', { token });
    const held = upstream.hold('updateReferralConfig');
    const writing = a.ask('updateReferralConfig', { token });
    await held.call;
    const end = a.shelf.hold('swap');
    held.release();
    await end.call;
    await a.pass(0.2);
    expect(await writing).toMatchObject({ status: 200, version: 2 });
    for (const one of [b, a])
      expect(await one.ask('getReferralConfig', { token })).toMatchObject({ version: 2, cache: NOT_KEPT });
    end.lose(); // it is told again
    await a.pass(2);
    expect(await b.ask('getReferralConfig', { token })).toMatchObject({ version: 2, cache: STORED });
  });
});

test('a credential that a write finds refused, which the store hears of late, has no copies meanwhile', async () => {
  const { a, upstream, token } = open();
  const read = async () => (await a.ask('getSubscription', { token })).cache; // which the write does not touch
  await read();
  expect(await read()).toMatch('hit');
  const held = upstream.hold('updateReferralConfig');
  const writing = a.ask('updateReferralConfig', { token });
  await held.call;
  const end = a.shelf.hold('swap');
  held.release(answer(401));
  await end.call;
  await a.pass(0.2);
  expect((await writing).status).toBe(401);
  for (let times = 0; times < 2; times++) expect(await read()).toBe(NOT_KEPT);
  end.lose(); // it is told again
  await a.pass(2);
  expect(await read()).toBe(STORED);
});

describe('a write that was refused since the store did not answer', () => {
  test.each(['read', 'swap'] as const)(
    'does nothing later, when its %s comes late: its key is free',
    async (method) => {
      const { a, b, upstream, token, key } = open();
      await b.ask('getReferralConfig', { token });
      const held = a.shelf.hold(method);
      const asking = a.ask('purchasePlan', { token, key });
      await a.pass(1);
      expect((await asking).code).toBe('store_unavailable');
      held.release();
      await a.pass(1);
      expect((await b.ask('getReferralConfig', { token })).cache).toMatch('hit');
      expect((await b.ask('purchasePlan', { token, key })).status).toBe(200);
      expect(upstream.callsOf(token, 'purchasePlan')).toHaveLength(1);
    },
  );
});
