import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Member, openDoubles } from '../../support/fleet.ts';
import { copyOf, type Data, noData } from '../../support/redis-node.ts';
import { leaksIn, secret } from '../../support/secrets.ts';
import { buy } from './helpers.ts';

const newOrder = () => ({ token: secret(), key: secret() });
type Order = Partial<ReturnType<typeof newOrder>>;

/** `REQUEST_TIMEOUT_MS` and 5 s. */
const WINDOW_SECONDS = 15;

const open = () => {
  const fleet = openDoubles();
  return { ...fleet, both: fleet.instances };
};

const read = (one: Member, token: string) => one.ask('getReferralConfig', { token });

/** What the other store holds, of what was there a moment ago. */
const STORES: readonly (readonly [string, (before: Data) => Data])[] = [
  ['emptied', noData],
  ['restarted with all that it had', copyOf],
];

describe.each(STORES)('%s', (name, after) => {
  describe(says('**A store that has been replaced**'), () => {
    test(says('no copy is used, and keyed writes and purchases are 503'), async () => {
      const { a, b, both, upstream } = open();
      const token = secret();
      for (const one of both) await read(one, token);
      upstream.change(token); // elsewhere, so that a copy of before shows
      a.shelf.replace(after(a.shelf.data));
      for (const one of both) {
        expect(await read(one, token)).toMatchObject({ version: 2, cache: 'portico; fwd=miss' });
        for (const order of [newOrder(), { token: secret() }]) expect(await buy(one, order)).toBe('store_unavailable');
        const refused = await one.ask('purchasePlan', newOrder());
        expect(refused.headers.get('Retry-After')).toBe(String(WINDOW_SECONDS));
        expect((await one.ask('updateReferralConfig', { token: secret() })).status).toBe(200);
      }
      await b.pass(WINDOW_SECONDS);
      for (const one of both) expect(await buy(one, newOrder())).toBe('200');
      expect((await read(b, token)).cache).toBe('portico; fwd=miss; stored');
      expect(await read(a, token)).toMatchObject({ version: 2, cache: 'portico; hit; ttl=30' });
    });

    test(says('but for replays, and a key that is not found is 503, not 404'), async () => {
      const { a, both } = open();
      const order = newOrder();
      expect(await buy(a, order)).toBe('200');
      a.shelf.replace(after(a.shelf.data));
      const isKept = name !== 'emptied';
      for (const one of both) {
        expect(await buy(one, order)).toBe(isKept ? '200 replayed' : 'store_unavailable');
        expect((await one.call('/bff/v1/outcome', newOrder())).code).toBe('store_unavailable');
        expect((await one.call('/bff/v1/outcome', order)).status).toBe(isKept ? 200 : 503);
      }
      await a.pass(WINDOW_SECONDS);
      expect((await a.call('/bff/v1/outcome', newOrder())).code).toBe('outcome_not_found');
    });

    test('what is under way is not sent again, and its answer is replayed', async () => {
      const { a, b, both, upstream } = open();
      const orders: Order[] = [newOrder(), { token: secret() }];
      const all = orders.map((order) => ({ held: upstream.hold('purchasePlan'), buying: buy(b, order), order }));
      for (const { held } of all) await held.call;
      a.shelf.replace(after(a.shelf.data));
      for (const one of both)
        for (const { order } of all) expect(await buy(one, order)).toMatch(/^store_unavailable|_progress$/);
      for (const { held } of all) held.release();
      for (const { buying } of all) expect(await buying).toBe('200');
      expect(await buy(a, orders[0]!)).toBe('200 replayed');
      for (const { token } of orders) expect(upstream.callsOf(token!)).toHaveLength(1);
    });

    test('what is never answered is told to the new store as unknown', async () => {
      const { a, b, both, upstream } = open();
      const order = newOrder();
      upstream.next('purchasePlan', 'hang');
      const buying = buy(a, order);
      await upstream.arrived('purchasePlan');
      a.shelf.replace(after(a.shelf.data));
      await b.pass(WINDOW_SECONDS);
      expect(await buying).toBe('upstream_timeout');
      for (const one of both) expect(await buy(one, order)).toBe('outcome_unknown');
      expect(upstream.callsOf(order.token)).toHaveLength(1);
    });
  });

  test(says('No copy from before is given.'), async () => {
    const { a, b, both, upstream } = open();
    const token = secret();
    for (const one of both) await read(one, token);
    const slow = upstream.hold('getReferralConfig');
    const reading = a.ask('getReferralConfig', { token, headers: { 'Cache-Control': 'no-cache' } });
    await slow.call;
    a.shelf.replace(after(a.shelf.data));
    expect((await b.ask('updateReferralConfig', { token })).status).toBe(200);
    slow.release();
    await reading;
    for (const one of both) expect((await read(one, token)).version).toBe(2);
    await a.pass(WINDOW_SECONDS);
    for (const one of both) expect((await read(one, token)).version).toBe(2);
  });
});

test(says('A key, a record or a sign-out that it loses in a crash or failover is forgotten.'), async () => {
  const { a, b, upstream } = open();
  const order = newOrder();
  const before = copyOf(a.shelf.data);
  expect(await buy(a, order)).toBe('200');
  a.shelf.replace(before);
  await b.pass(WINDOW_SECONDS);
  expect(await buy(b, order)).toBe('200');
  expect(upstream.callsOf(order.token)).toHaveLength(2);
});

test(says('What is stored is sealed (AES-256-GCM, bound to its key), expires, and names no credential.'), async () => {
  const { a } = open();
  const order = newOrder();
  await read(a, order.token);
  expect(await buy(a, order)).toBe('200');
  const kept = [...a.shelf.data.values];
  expect(new Set(kept.map(([name]) => name.split(' ')[1]!.split(':')[0]))).toEqual(new Set(['c', 'note', 'r']));
  expect(
    leaksIn(kept.map(([name, { bytes }]) => `${name} ${Buffer.from(bytes).toString('latin1')}`).join(' ')),
  ).toEqual([]);
  for (const [, { expiresAt }] of kept) expect(expiresAt).toBeLessThanOrEqual(a.clock.now() + 25 * 3_600_000);
  // A record in the place of another opens nothing: its key stays taken.
  const other = newOrder();
  await buy(a, other);
  const records = [...a.shelf.data.values.keys()].filter((name) => name.includes(' r:'));
  a.shelf.data.values.set(records[1]!, a.shelf.data.values.get(records[0]!)!);
  expect(await buy(a, other)).toBe('outcome_unknown');
});

const SESSION = '/bff/v1/session';
const SAME = { 'sec-fetch-site': 'same-origin' };
const by = (cookie: string) => ({ token: null, headers: { ...SAME, cookie } });

const [OLD, NEW] = [secret('old-one-of-the-fleet'), secret('new-one-of-the-fleet')];

/** As the operator lists them, one restart after the other: what is new is known first, then it seals; the last one stays. */
const STAGES = { old: OLD, 'new known': `${OLD},${NEW},${OLD}`, new: `${NEW},${OLD}` } as const;
type Stage = keyof typeof STAGES;

/** Which stand side by side while instances are restarted. */
const STEPS: readonly (readonly [Stage, Stage])[] = [
  ['old', 'new known'],
  ['new known', 'old'],
  ['new known', 'new'],
  ['new', 'new known'],
];

const restarted = (from: Stage, to: Stage) => {
  const { start, upstream } = openDoubles({ SESSIONS: 'true' }, { size: 0 });
  return { a: start({ SECRETS: STAGES[from] }), b: start({ SECRETS: STAGES[to] }), upstream, token: secret() };
};

describe(says('the first seals, all open, the last names accounts and seals records'), () => {
  describe.each(STEPS)('through one with `%s` and one with `%s`', (from, to) => {
    test('a key is replayed, and what is under way is known to be', async () => {
      const { a, b, upstream, token } = restarted(from, to);
      const held = upstream.hold('purchasePlan');
      const order = { token, key: 'key' };
      const buying = a.ask('purchasePlan', order);
      await held.call;
      for (const one of [order, { token }])
        expect((await b.ask('purchasePlan', one)).code).toBe('idempotency_in_progress');
      held.release();
      const { text } = await buying;
      expect(await b.ask('purchasePlan', order)).toMatchObject({ status: 200, text });
      expect(upstream.callsOf(token)).toHaveLength(1);
    });

    test('a session goes on, is of the same account, and a sign-out of it holds', async () => {
      const { a, b, token } = restarted(from, to);
      const signedIn = await a.call(SESSION, { body: { token }, headers: SAME, token: null });
      const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!;
      const { account } = (await a.call(SESSION, by(cookie))).json;
      expect((await b.call(SESSION, by(cookie))).json).toMatchObject({ authenticated: true, account });
      expect((await b.call(SESSION, { ...by(cookie), method: 'DELETE' })).status).toBe(204);
      for (const one of [a, b]) expect((await one.call(SESSION, by(cookie))).status).toBe(401);
    });

    test('a copy is shared, and what was there before a write is not read', async () => {
      const { a, b, upstream, token } = restarted(from, to);
      await read(a, token);
      expect((await read(b, token)).cache).toBe('portico; hit; ttl=30');
      for (const [writer, reader] of [
        [a, b],
        [b, a],
      ] as const) {
        await writer.ask('updateReferralConfig', { token });
        for (const one of [reader, writer]) expect((await read(one, token)).version).toBe(upstream.versionOf(token));
      }
    });
  });
});
