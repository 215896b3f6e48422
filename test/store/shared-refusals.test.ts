import { expect, test, vi } from 'vitest';
import type { Engine } from '../../src/store/shared/engine.ts';
import type { SharedStore } from '../../src/store/shared.ts';
import type { CacheKey, Snapshot } from '../../src/store/store.ts';
import { barrier } from '../support/barrier.ts';
import { manualClock, START_MS } from '../support/clock.ts';
import { objectEngine } from '../support/object-storage.ts';
import { entryOf, keep, keyIn, look, newAccount } from './contract.ts';
import { sharedStore } from './shared-world.ts';

/** Two instances; what the first sends to the engine can be refused, and what it hears delayed. */
function openWorld() {
  const objects = objectEngine();
  const clock = manualClock();
  const way = { isAway: false, saves: 0, after: async () => undefined as unknown };
  const engine: Engine = {
    ...objects,
    async snapshot(account, question) {
      if (way.isAway) throw new Error('away');
      return objects.snapshot(account, question);
    },
    async save(account, save) {
      way.saves++;
      if (way.isAway) throw new Error('away');
      const saved = await objects.save(account, save);
      await way.after();
      return saved;
    },
  };
  return { way, clock, store: sharedStore({ engine, clock }), other: sharedStore({ engine: objects, clock }) };
}

const request = async (store: SharedStore, key: CacheKey): Promise<Snapshot> =>
  store.snapshot({
    account: key.account,
    owner: key.account,
    now: START_MS,
    window: undefined,
    keys: [key],
    fetches: true,
    waitUntil: () => undefined,
  });

const refuse = async (one: Snapshot, key: CacheKey) =>
  one.save(key, await one.lookup(key, START_MS), { drop: 'everything' });

test('while the engine is away, thousands of refused requests leave one report for each account', async () => {
  const { store, other, way, clock } = openWorld();
  const keys = Array.from({ length: 5 }, () => keyIn(newAccount()));
  for (const key of keys) for (const one of [store, other]) await keep(one, key, entryOf('"copy"'));
  const asking = await Promise.all(keys.map(async (key) => ({ key, snapshot: await request(store, key) })));
  way.isAway = true;
  const refused: Promise<unknown>[] = [];
  const tried = way.saves + keys.length * 2_000;
  for (let n = 0; n < 2_000; n++)
    for (const { key, snapshot } of asking) {
      refused.push(refuse(snapshot, key));
      await request(store, key);
    }
  await vi.waitFor(() => expect(way.saves).toBe(tried));
  expect(store.pending).toBe(keys.length);
  const before = way.saves;
  clock.advance(50);
  await vi.waitFor(() => expect(way.saves).toBe(before + keys.length));
  for (const { key } of asking) await request(store, key);
  expect(way.saves).toBe(before + keys.length);
  way.isAway = false;
  await vi.waitFor(() => {
    clock.advance(100);
    expect(store.pending).toBe(0);
  });
  await Promise.all(refused);
  for (const key of keys) for (const one of [store, other]) expect((await look(one, key)).entry).toBeUndefined();
});

test('what is refused while an earlier refusal is being acknowledged is told to the engine too', async () => {
  const { store, other, way, clock } = openWorld();
  const key = keyIn(newAccount());
  await keep(store, key, entryOf('"copy"'));
  const [first, second] = [await request(store, key), await request(store, key)];
  const gate = barrier();
  way.after = () => gate.arrive();
  const one = refuse(first, key);
  await gate.reached; // the engine has dropped everything, and its reply is on its way
  await keep(other, key, entryOf('"kept since"'));
  const both = Promise.all([one, refuse(second, key)]);
  await gate.count(2);
  gate.release();
  await both;
  await vi.waitFor(() => {
    clock.advance(50);
    expect(store.pending).toBe(0);
  });
  expect((await look(other, key)).entry).toBeUndefined();
});
