import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { openWorld } from '../support/world.ts';

const ID = 'getSubscription';

/** A store that says of everything that some instance may have written what it has not heard of. */
function doubting(): Store {
  const store = new MemoryStore({ maxBytes: 1_048_576 });
  const lookup = store.answers.lookup.bind(store.answers);
  store.answers.lookup = (place, now) => ({ ...lookup(place, now), isDoubtful: true });
  return store;
}

const held = async () => {
  const world = await openWorld({}, { store: doubting() });
  world.upstream.on(callOf(ID), json(200, bodyOf(ID, 1)));
  await world.ask(ID);
  return world;
};

describe('a copy in doubt', () => {
  test('is given while it is fresh', async () => {
    const world = await held();
    world.clock.advance(29_000);
    expect((await world.ask(ID)).headers['cache-status']).toMatch(/^portico; hit/);
  });

  test('is not given stale', async () => {
    const world = await held();
    world.clock.advance(31_000);
    world.upstream.on(callOf(ID), json(200, bodyOf(ID, 2)));
    const answer = await world.ask(ID);
    expect([answer.headers['cache-status'], answer.text]).toEqual([
      'portico; fwd=stale; stored',
      expect.stringContaining('2'),
    ]);
  });

  test('does not stand in for an answer that failed', async () => {
    const world = await held();
    world.clock.advance(31_000);
    world.upstream.on(callOf(ID), json(500));
    expect((await world.ask(ID)).status).toBe(502);
  });
});
