import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Member, openDoubles, openFleet } from '../../support/fleet.ts';
import { secret } from '../../support/secrets.ts';
import { buy } from './helpers.ts';

const open = () => {
  const fleet = openDoubles();
  const order = { token: secret(), key: secret() };
  const buyBy = (one: Member) => buy(one, order);
  return { ...fleet, order, token: order.token, buyBy, sent: () => fleet.upstream.callsOf(order.token) };
};

/** The upstream has answered, and the store is being told. */
const answered = async () => {
  const all = open();
  const { a, upstream, order } = all;
  const held = upstream.hold('purchasePlan');
  const buying = a.ask('purchasePlan', order);
  await held.call;
  const end = a.shelf.hold('swap');
  held.release();
  await end.call;
  return { ...all, end, buying };
};

/** When the time of a request that was under way is over. */
const REQUEST_SECONDS = 10.1;

describe(says('An instance killed in mid-purchase leaves a record that says so: its key answers 409.'), () => {
  test('when the upstream had all of it: under way, and of unknown outcome when its time is over', async () => {
    const { a, b, upstream, order, buyBy, sent, start } = open();
    const held = upstream.hold('purchasePlan');
    void a.ask('purchasePlan', order);
    await held.call;
    a.shelf.isDead = true;
    held.release();
    expect(await buyBy(b)).toBe('idempotency_in_progress');
    expect((await b.ask('purchasePlan', { token: order.token })).code).toBe('idempotency_in_progress');
    await b.pass(REQUEST_SECONDS);
    for (const one of [b, start(), b]) expect(await buyBy(one)).toBe('outcome_unknown');
    expect(sent()).toHaveLength(1);
  });

  test('when the store has not heard of it: it can be sent', async () => {
    const { a, b, order, buyBy, sent } = open();
    const begin = a.shelf.hold('swap');
    void a.ask('purchasePlan', order);
    await begin.call;
    a.shelf.isDead = true;
    expect([await buyBy(b), await buyBy(b)]).toEqual(['200', '200 replayed']);
    expect(sent()).toHaveLength(1);
  });

  test('when the store hears of it only after that: it is of unknown outcome, and was not sent', async () => {
    const { a, b, order, buyBy, sent } = open();
    const begin = a.shelf.hold('swap');
    void a.ask('purchasePlan', order);
    await begin.call;
    a.shelf.isDead = true;
    begin.release();
    await b.idle();
    expect(await buyBy(b)).toBe('idempotency_in_progress');
    await b.pass(REQUEST_SECONDS);
    expect(await buyBy(b)).toBe('outcome_unknown');
    expect(sent()).toEqual([]);
  });

  test('when the store has not heard the answer: it is of unknown outcome', async () => {
    const { a, b, buyBy, sent } = await answered();
    a.shelf.isDead = true;
    expect(await buyBy(b)).toBe('idempotency_in_progress');
    await b.pass(REQUEST_SECONDS);
    expect(await buyBy(b)).toBe('outcome_unknown');
    expect(sent()).toHaveLength(1);
  });

  test('when the store hears the answer only after that: it is replayed', async () => {
    const { a, b, buyBy, end } = await answered();
    a.shelf.isDead = true;
    end.release();
    await b.idle();
    expect(await buyBy(b)).toBe('200 replayed');
  });
});

describe(says('whichever is killed, paused or new'), () => {
  test('paused between what it announced and its first byte, until its time is up: it does not send it', async () => {
    const { a, b, order, buyBy, sent } = open();
    const begun = a.shelf.hold('swap', 'coming');
    const buying = a.ask('purchasePlan', order);
    await begun.call;
    a.standStill();
    await b.pass(REQUEST_SECONDS);
    begun.release();
    a.goOn();
    expect((await buying).status).toBeGreaterThan(500);
    await a.pass(2);
    expect(sent()).toEqual([]);
    expect(await buyBy(b)).toBe('200');
  });

  test('paused while others write: it gives nothing old afterwards', async () => {
    const { a, b, start, upstream, token } = open();
    for (const one of [a, b]) await one.ask('getReferralConfig', { token });
    a.standStill();
    for (const one of [b, start(), b]) await one.ask('updateReferralConfig', { token });
    a.goOn();
    expect((await a.ask('getReferralConfig', { token })).version).toBe(upstream.versionOf(token));
  });

  test('killed: the copies that it has kept are there for the others, also stale', async () => {
    const { a, b, start, upstream, token } = open();
    await a.ask('getReferralConfig', { token });
    a.shelf.isDead = true;
    await b.pass(40);
    const held = upstream.hold('getReferralConfig'); // the refresh
    for (const one of [b, start()])
      expect((await one.ask('getReferralConfig', { token })).cache).toBe('portico; hit; ttl=-10');
    await held.call;
    held.release();
  });
});

test(`${says('still under way → 409 with `Retry-After: 1`')}: of many with one key at once one is sent`, async () => {
  const { upstream, instances } = await openFleet();
  const order = { token: secret(), key: secret() };
  const all = await Promise.all(Array.from({ length: 40 }, (_, n) => instances[n % 2]!.ask('purchasePlan', order)));
  const [sent] = all.filter(({ status, headers }) => status === 200 && !headers.has('Idempotency-Replayed'));
  expect(sent).toBeDefined();
  for (const one of instances) expect((await one.ask('purchasePlan', order)).text).toBe(sent!.text);
  expect(upstream.callsOf(order.token)).toHaveLength(1);
});
