import { expect, test, vi } from 'vitest';
import type { Engine } from '../../src/store/shared/engine.ts';
import type { SharedStore } from '../../src/store/shared.ts';
import type { CacheKey, Snapshot } from '../../src/store/store.ts';
import { barrier } from '../support/barrier.ts';
import { manualClock, START_MS } from '../support/clock.ts';
import { objectEngine } from '../support/object-storage.ts';
import { entryOf, keep, keyIn, look, newAccount } from './contract.ts';
import { sharedStore } from './shared-world.ts';

/** Two instances; what the first hears of a save can be delayed. */
function openWorld() {
  const objects = objectEngine();
  const clock = manualClock();
  const way = { after: async () => undefined as unknown };
  const engine: Engine = {
    ...objects,
    async save(account, save) {
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
