import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { limitOf } from '../limits/helpers.ts';
import { openTimedWorld, PLAIN } from '../resilience/helpers.ts';
import { burst } from '../resilience/slots.ts';
import { bodyOf, callOf, pathOf, tokenOf } from '../support/marked.ts';
import { barrier, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

const GOOD = json(200, bodyOf(PLAIN, 1));

test.each([9, 1_000])(
  'an account’s window stands after 100,000 credentials of %i addresses that nobody knows',
  async (addresses) => {
    const store = new MemoryStore({ maxBytes: 1_048_576 });
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '10' }, { store });
    world.upstream.on(callOf(PLAIN), GOOD);
    for (const left of [9, 8, 7]) expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, left, 60]);
    const now = world.clock.now();
    const window = { name: 'requests by account', lengthMs: 60_000, limit: 10 };
    for (let n = 0; n < 100_000; n++) {
      const stranger = { account: `stranger-${n}`, owner: `address ${n % addresses}` };
      store.snapshot({ ...stranger, now, window, waitUntil: () => undefined });
    }
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, 6, 60]);
  },
);

test('the window of a credential that nobody knows stands after 100,000 from another address', async () => {
  const store = new MemoryStore({ maxBytes: 1_048_576 });
  const window = { name: 'requests by account', lengthMs: 60_000, limit: 10 };
  const count = (account: string, address: number) => {
    const owned = { account, owner: `address ${address}` };
    return store.snapshot({ ...owned, now: 0, window, waitUntil: () => undefined }).use?.used;
  };
  expect([count('own', 1), count('other', 2), count('first', 3)]).toEqual([1, 1, 1]);
  for (let n = 0; n < 100_000; n++) count(`stranger-${n}`, 3);
  expect([count('own', 1), count('other', 2), count('first', 3)]).toEqual([2, 2, 1]);
  expect(store.usage().accounts).toBeLessThan(50_000 / 16 + 10);
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
