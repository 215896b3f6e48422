import { describe, expect, test } from 'vitest';
import {
  byId,
  CARD_LIST,
  cardIn,
  cardText,
  legsOf,
  listOf,
  openOverviews,
  overviewTable,
  SUBSCRIPTION,
  subscriptionWith,
  withCard,
} from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { json } from '../support/scripted-upstream.ts';
import { sharedStores } from '../support/stores.ts';

/** A world over a shared store, and how often that was asked what it knows. */
const openShared = async () => {
  const clock = manualClock();
  const { shelf, store } = sharedStores(clock);
  const world = await openOverviews({}, { clock, store });
  const during = async (act: () => Promise<unknown>) => {
    const before = shelf.times('read');
    await act();
    return shelf.times('read') - before;
  };
  return { ...world, during };
};

describe('a shared store is asked once', () => {
  test.each(overviewTable)('for %s, cold and cached', async (path, overview) => {
    const world = await openShared();
    expect(await world.during(() => world.get(path))).toBe(1);
    expect(await world.during(() => world.get(path))).toBe(1);
    expect(world.upstream.calls).toHaveLength(legsOf(overview).length);
  });

  test.each(withCard)('for a cached %s whose card is not in the list', async (path, overview) => {
    const world = await openShared();
    world.on({ path: CARD_LIST }, json(200, listOf(cardText('8'))));
    world.on(byId('1071'), json(200, cardText('1071')));
    await world.get(path);
    expect(await world.during(async () => expect(cardIn((await world.get(path)).text)).toBe(cardText('1071')))).toBe(1);
    expect(world.upstream.calls).toHaveLength(legsOf(overview).length + 1);
  });

  test.each(withCard)('for a cached %s without a card, and its list is not asked for', async (path) => {
    const world = await openShared();
    world.on({ path: SUBSCRIPTION }, json(200, subscriptionWith('null')));
    await world.get(path);
    const before = world.upstream.calls.length;
    expect(await world.during(() => world.get(path))).toBe(1);
    expect(world.upstream.calls).toHaveLength(before);
  });
});
