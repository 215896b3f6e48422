import { describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/port.ts';
import { limitedFor, limitOf } from '../limits/helpers.ts';
import { openTimedWorld, PLAIN } from '../resilience/helpers.ts';
import { burst } from '../resilience/slots.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { bodyOf, callOf, pathOf, tokenOf } from '../support/marked.ts';
import { barrier, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { openWorld } from '../support/world.ts';

const GOOD = json(200, bodyOf(PLAIN, 1));

/** So many credentials, each made up for one request. */
const crowd = async (store: Store, count = 100_000) => {
  const window = { name: 'requests by account', lengthMs: 60_000, limit: 10 };
  for (let n = 0; n < count; n++)
    await store.snapshot({ account: `stranger-${n}`, window, waitUntil: () => undefined });
};

describe('after 100,000 credentials that were made up there stands', () => {
  test('the limit of an account that the upstream has accepted', async () => {
    const clock = clockOfDeadlines();
    const store = memoryStore(clock);
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '10' }, { clock, store });
    world.upstream.on(callOf(PLAIN), GOOD);
    for (const left of [9, 8, 7]) expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, left, 60]);
    await crowd(store);
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, 6, 60]);
  });

  test('the limit of an address', async () => {
    const clock = clockOfDeadlines();
    const store = memoryStore(clock);
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '10' }, { clock, store });
    world.upstream.on(callOf('loginSocial'), json(200, bodyOf('loginSocial', 1)));
    for (let sent = 0; sent < 20; sent++) expect((await world.ask('loginSocial')).status).toBe(200);
    await crowd(store);
    expect(limitedFor(await world.ask('loginSocial'))).toBe(60);
  });
});

describe('slots', () => {
  const SLOTS = 32;

  const openSlots = () =>
    openTimedWorld({
      UPSTREAM_MAX_CONNECTIONS: String(SLOTS),
      TRUSTED_PROXIES: '127.0.0.1',
      RATE_LIMIT_PER_MINUTE: '0',
    });

  test.each([
    ['one account', { tokens: 1, areAccepted: true, addresses: 1, most: 8 }],
    ['four accounts', { tokens: 4, areAccepted: true, addresses: 1, most: 17 }],
    ['four strangers of an address', { tokens: 4, areAccepted: false, addresses: 1, most: 8 }],
    ['hundreds of strangers of an address', { tokens: 200, areAccepted: false, addresses: 1, most: 8 }],
    ['hundreds of strangers of as many addresses', { tokens: 200, areAccepted: false, addresses: 200, most: 16 }],
  ])('that %s would have all of cost another account neither its answers nor time', async (_, hogs) => {
    const world = await openSlots();
    const tokens = Array.from({ length: hogs.tokens }, secret);
    const gate = barrier();
    world.upstream.on(callOf(PLAIN), GOOD);
    for (const token of [world.token, ...(hogs.areAccepted ? tokens : [])]) await world.ask(PLAIN, { token });
    world.upstream.on(
      callOf(PLAIN),
      perCall((to) => (tokens.includes(tokenOf(to)) ? reply(hold(gate), GOOD) : GOOD)),
    );
    const busy = Array.from({ length: 200 }, (__, n) =>
      world.ask(PLAIN, {
        path: `${pathOf(PLAIN)}?nth=${n}`,
        token: tokens[n % tokens.length]!,
        headers: { 'X-Forwarded-For': `10.0.0.${n % hogs.addresses}` },
      }),
    );
    await gate.count(hogs.most);
    await world.clock.waits(burst, 200 - hogs.most);
    for (let asked = 0; asked < 4; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(world.clock.lengths.filter(burst)).toHaveLength(200 - hogs.most);
    gate.release();
    expect(new Set((await Promise.all(busy)).map(({ status }) => status))).toEqual(new Set([200]));
  });
});
