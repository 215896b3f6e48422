import { beforeEach, describe, expect, test } from 'vitest';
import type { Place } from '../../src/store/store.ts';
import { entryOf, heldIn, keep, newAccount, placeIn } from './contract.ts';
import { MINUTE_MS, windowOf } from './limits.ts';
import { ask, claimOf, later, WITHHELD } from './records.ts';
import { type Troubled, troubled } from './troubled.ts';
import { arrivalOf } from './visits.ts';

let world: Troubled;
let account: string;
let place: Place;

beforeEach(() => {
  world = troubled();
  account = newAccount();
  place = placeIn(account);
});

describe('while the engine refuses, a read', () => {
  test('finds nothing, also where a copy is at hand, and finds it again afterwards', async () => {
    await keep(world.store.answers, place, entryOf('"kept"'));
    world.chaos.refuse();
    expect(await heldIn(world.store.answers, place)).toBeUndefined();
    const { known } = await world.store.visit(arrivalOf(account, [place]));
    expect((await known.lookup(place)).entry).toBeUndefined();
    world.chaos.recover();
    expect(await heldIn(world.store.answers, place)).toBe('"kept"');
  });

  test('goes on under versions that equal reads of this instance share, until it writes', async () => {
    world.chaos.refuse();
    const found = async () => {
      const { known } = await world.store.visit(arrivalOf(account, [place]));
      return [await known.lookup(place), await world.store.answers.lookup(place)].map(({ versions }) => versions);
    };
    const before = new Set([...(await found()), ...(await found())]);
    await world.store.answers.touch(newAccount(), place.tags);
    const after = new Set([...(await found()), ...(await found())]);
    expect([before.size, after.size, new Set([...before, ...after]).size]).toEqual([1, 1, 2]);
  });

  test('saves nothing under such versions, not even once the engine answers again', async () => {
    world.chaos.refuse();
    const { versions } = await world.store.answers.lookup(place);
    world.chaos.recover();
    world.chaos.heard();
    expect(await world.store.answers.save(place, entryOf('"late"'), versions)).toBe(false);
    expect(world.chaos.heard()).toEqual([]);
  });

  test('waits for no other instance’s turn', async () => {
    const { versions } = await world.other.answers.lookup(place);
    await world.other.turns.take(place, versions);
    expect(await world.store.turns.take(place, versions)).toBe(false);
    world.chaos.refuse();
    expect(await world.store.turns.take(place, versions)).toBe(true);
    await world.store.turns.pass(place);
    const { versions: nowhere } = await world.store.answers.lookup(place);
    world.chaos.recover();
    expect(await world.store.turns.take(place, nowhere)).toBe(true);
    expect(await world.other.turns.take(place, versions)).toBe(true);
  });

  test('keeps no copy of what could not be saved', async () => {
    const { versions } = await world.store.answers.lookup(place);
    world.chaos.refuse();
    expect(await world.store.answers.save(place, entryOf('"lost"'), versions)).toBe(false);
    world.chaos.recover();
    expect(await heldIn(world.store.answers, place)).toBeUndefined();
    expect(world.store.usage().entries).toBe(0);
  });
});

describe('while the engine refuses, limits', () => {
  test('are counted by the instance, with visits and without', async () => {
    world.chaos.refuse();
    const window = windowOf({ account });
    const uses = [];
    for (let n = 0; n < 2; n += 1) {
      uses.push(await world.store.limits.take(window));
      uses.push((await world.store.visit(arrivalOf(account, [], { now: window.now }))).use);
    }
    expect(uses).toEqual([1, 2, 3, 4].map((used) => ({ used, endsAt: window.now + MINUTE_MS })));
  });

  test('are those of the engine again afterwards', async () => {
    const window = windowOf({ account });
    await world.store.limits.take(window);
    world.chaos.refuse();
    for (let n = 0; n < 5; n += 1) await world.store.limits.take(window);
    world.chaos.recover();
    expect((await world.store.limits.take(window)).used).toBe(2);
  });

  test('count nothing where no limit applies', async () => {
    world.chaos.refuse();
    expect((await world.store.visit(arrivalOf(account, [], { window: undefined }))).use).toBeUndefined();
    expect(world.store.usage().windows).toBe(0);
  });

  test('hold calls back all the same, on this instance', async () => {
    world.chaos.refuse();
    const until = Date.now() + MINUTE_MS;
    await world.store.limits.hold(account, until);
    expect(world.store.limits.heldUntil(account)).toBe(until);
  });
});

describe('while the engine refuses, a write', () => {
  test('cannot claim its key: nothing was sent', async () => {
    world.chaos.refuse();
    await expect(world.store.records.claim(claimOf({ account }))).rejects.toMatchObject(WITHHELD);
  });

  test('that has its key cannot be begun: nothing was sent', async () => {
    const claim = claimOf({ account });
    await world.store.records.claim(claim);
    world.chaos.refuse();
    await expect(world.store.records.begin(claim)).rejects.toMatchObject(WITHHELD);
  });

  test('can be settled and released without an error', async () => {
    world.chaos.refuse();
    await expect(world.store.records.settle(claimOf({ account }), 'unknown')).resolves.toBeUndefined();
    await expect(world.store.records.release(claimOf({ account, key: 'other' }))).resolves.toBeUndefined();
    await expect(world.store.answers.touch(account, ['subusers'])).resolves.toBeUndefined();
  });
});

describe('where replies are lost', () => {
  test('a claim that was written all the same is given back before anything else', async () => {
    const claim = claimOf({ account });
    world.chaos.loseReplies('claim');
    await expect(world.store.records.claim(claim)).rejects.toMatchObject(WITHHELD);
    world.chaos.recover();
    expect(await ask(world.store.records, later(claim, 1))).toBeUndefined();
  });

  test('a write that may have been begun is never free unless it is released', async () => {
    const claim = claimOf({ account });
    await world.store.records.claim(claim);
    world.chaos.loseReplies('advance');
    await expect(world.store.records.begin(claim)).rejects.toMatchObject(WITHHELD);
    world.chaos.recover();
    expect(await ask(world.other.records, later(claim, 1))).toMatchObject({ outcome: 'under_way' });
    await world.store.records.release(claim);
    expect(await ask(world.other.records, later(claim, 1))).toBeUndefined();
  });

  test('an answer that was saved all the same is found with the next question', async () => {
    const { versions } = await world.store.answers.lookup(place);
    world.chaos.loseReplies('save');
    expect(await world.store.answers.save(place, entryOf('"kept"'), versions)).toBe(false);
    world.chaos.recover();
    expect(await heldIn(world.store.answers, place)).toBe('"kept"');
  });
});
