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
      const stranger = { principal: `stranger-${n}`, owner: `address ${n % addresses}` };
      await store.snapshot({ ...stranger, now, window, waitUntil: () => undefined });
    }
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, 6, 60]);
  },
);

test('the window of a credential that nobody knows stands after 100,000 from another address', async () => {
  const store = new MemoryStore({ maxBytes: 1_048_576 });
  const window = { name: 'requests by account', lengthMs: 60_000, limit: 10 };
  const count = async (principal: string, address: number) => {
    const holder = { principal, owner: `address ${address}` };
    return (await store.snapshot({ ...holder, now: 0, window, waitUntil: () => undefined })).use?.used;
  };
  expect([await count('own', 1), await count('other', 2), await count('first', 3)]).toEqual([1, 1, 1]);
  for (let n = 0; n < 100_000; n++) await count(`stranger-${n}`, 3);
  expect([await count('own', 1), await count('other', 2), await count('first', 3)]).toEqual([2, 2, 1]);
  expect(store.usage().accounts).toBeLessThan(50_000 / 16 + 10);
});

describe('slots', () => {
  const SLOTS = 32;

  /** All of them are in use by reads that do not end. */
  const busyWorld = async (hogs: readonly string[]) => {
    const world = await openTimedWorld({ UPSTREAM_MAX_CONNECTIONS: String(SLOTS) });
    const gate = barrier();
    world.upstream.on(
      callOf(PLAIN),
      perCall((to) => (hogs.includes(tokenOf(to)) ? reply(hold(gate), GOOD) : GOOD)),
    );
    await world.ask(PLAIN);
    const busy = Array.from({ length: SLOTS }, (_, n) =>
      world.ask(PLAIN, { path: `${pathOf(PLAIN)}?nth=${n}`, token: hogs[n % hogs.length]! }),
    );
    await gate.count(SLOTS);
    return { world, gate, busy };
  };

  test.each([
    ['four slow credentials', 4],
    ['as many slow credentials as there are slots', SLOTS],
  ])('in use by %s cost another account neither its answer nor time', async (_, count) => {
    const { world, gate, busy } = await busyWorld(Array.from({ length: count }, secret));
    world.clock.advance(500);
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(world.clock.lengths.filter(burst)).toEqual([]);
    gate.release();
    const statuses = (await Promise.all(busy)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(SLOTS - 1);
    expect(statuses.filter((status) => status === 503)).toHaveLength(1);
  });

  test('that were taken a moment ago are waited for, for a second at most', async () => {
    const { world, gate, busy } = await busyWorld([secret()].concat(Array.from({ length: 3 }, secret)));
    const asked = world.ask(PLAIN);
    await world.clock.waits(burst);
    world.clock.advance(1_000);
    expect(await asked).toMatchObject({ status: 200 });
    gate.release();
    await Promise.all(busy);
  });
});
