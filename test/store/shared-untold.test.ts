import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Untold } from '../../src/store/shared/untold.ts';
import type { Place, Tag } from '../../src/store/store.ts';
import { entryOf, heldIn, keep, newAccount, placeIn } from './contract.ts';
import { ask, claimOf, later } from './records.ts';
import { type Troubled, troubled } from './troubled.ts';
import { arrivalOf } from './visits.ts';

let world: Troubled;
let account: string;
let place: Place;

const verbs = () => world.chaos.heard().map((line) => line.split(' ', 1)[0]);

beforeEach(() => {
  world = troubled();
  account = newAccount();
  place = placeIn(account);
});

/** Whatever uses the engine for an account. */
const USES: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['a visit', () => world.store.visit(arrivalOf(account, [place]))],
  ['a lookup', async () => world.store.answers.lookup(place)],
  ['a claim', () => world.store.records.claim(claimOf({ account, key: 'next' }))],
  ['another touch', () => world.store.answers.touch(account, ['next'])],
  ['a beat', () => world.store.tellAll()],
];

describe('a touch that the engine did not hear', () => {
  beforeEach(async () => {
    await keep(world.other.answers, place, entryOf('"before"'));
    world.chaos.refuse();
    await world.store.answers.touch(account, ['subusers']);
    expect(await heldIn(world.other.answers, place)).toBe('"before"'); // the one documented gap
  });

  test.each(USES)('is told with %s, before all else, and not again', async (_, use) => {
    world.chaos.recover();
    await use();
    expect(verbs()[0]).toBe('touch');
    expect(await heldIn(world.other.answers, place)).toBeUndefined();
    await use();
    await world.store.answers.lookup(place);
    await keep(world.other.answers, place, entryOf('"after"'));
    await world.store.answers.lookup(place);
    await world.store.tellAll();
    expect(await heldIn(world.other.answers, place)).toBe('"after"');
  });

  test('keeps this instance from reading a copy from before it', async () => {
    expect(await heldIn(world.store.answers, place)).toBeUndefined();
    world.chaos.recover();
    expect(await heldIn(world.store.answers, place)).toBeUndefined();
    const { known } = await world.store.visit(arrivalOf(account, [place]));
    expect((await known.lookup(place)).entry).toBeUndefined();
  });

  test('is told before a read that was under way is saved, which then is not', async () => {
    world.chaos.recover();
    const { versions } = await world.other.answers.lookup(place);
    expect(await world.store.answers.save(place, entryOf('"late"'), versions)).toBe(false);
  });

  test('stays kept for as long as the engine refuses', async () => {
    for (let n = 0; n < 3; n += 1) await world.store.answers.lookup(place);
    await expect(world.store.tellAll()).rejects.toThrow('not all is told');
    expect(world.store.untoldAccounts).toBe(1);
    world.chaos.recover();
    await world.store.tellAll();
    expect(world.store.untoldAccounts).toBe(0);
    expect(await heldIn(world.other.answers, place)).toBeUndefined();
  });

  test('is not told for other accounts', async () => {
    world.chaos.recover();
    await world.store.answers.lookup(placeIn(newAccount()));
    expect(verbs()).toEqual(['visit']);
  });
});

test('a touch that comes while another is being told is told as well', async () => {
  const [one, two] = [placeIn(account, 'one?', ['one']), placeIn(account, 'two?', ['two'])];
  for (const at of [one, two]) await keep(world.other.answers, at, entryOf('"before"'));
  world.chaos.hang('touch');
  const first = world.store.answers.touch(account, ['one']);
  const second = world.store.answers.touch(account, ['two']);
  world.chaos.recover();
  await Promise.all([first, second]);
  const found = [await heldIn(world.other.answers, one), await heldIn(world.other.answers, two)];
  expect(found).toEqual([undefined, undefined]);
  expect(world.store.untoldAccounts).toBe(0);
});

test('a tag that is touched again while it is being told is told again', async () => {
  const told: (readonly Tag[])[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const untold = new Untold(async (_, tags) => {
    told.push(tags);
    if (told.length === 1) await promise;
  });
  untold.keepTags(account, ['one']);
  const telling = untold.tell(account);
  untold.keepTags(account, ['one']);
  resolve();
  await telling;
  expect(untold.accounts).toBe(1);
  await untold.tell(account);
  expect(told).toEqual([['one'], ['one']]);
  expect(untold.accounts).toBe(0);
});

/** A write that is about to be sent. */
const claimed = async () => {
  const claim = claimOf({ account });
  await world.store.records.claim(claim);
  await world.store.records.begin(claim);
  return claim;
};

describe('an answer to a write that the engine did not hear', () => {
  const answer = { status: 201, text: '{"id":1}' };

  test.each(USES)('is told with %s, before all else', async (_, use) => {
    const claim = await claimed();
    world.chaos.refuse();
    await world.store.records.settle(claim, answer);
    world.chaos.recover();
    world.chaos.heard();
    await use();
    const heard = verbs();
    expect(heard.indexOf('settle')).toBeGreaterThanOrEqual(0);
    expect(heard.filter((verb) => verb === 'visit' || verb === 'claim')).not.toContain(heard[0]);
    expect(await ask(world.other.records, later(claim, 1))).toMatchObject({ outcome: answer });
    await use();
    expect(verbs()).not.toContain('settle');
  });

  test('is told, also if another request with its key comes in between', async () => {
    const claim = await claimed();
    world.chaos.refuse();
    await world.store.records.settle(claim, answer);
    await expect(world.store.records.claim(later(claim, 1))).rejects.toThrow('store_unavailable');
    world.chaos.recover();
    expect(await ask(world.store.records, later(claim, 2))).toMatchObject({ outcome: answer });
    expect(await ask(world.other.records, later(claim, 2))).toMatchObject({ outcome: answer });
  });

  test('is told, also if another request with its key fails meanwhile', async () => {
    const claim = await claimed();
    world.chaos.hang('claim');
    const second = expect(world.store.records.claim(later(claim, 1))).rejects.toThrow('store_unavailable');
    await vi.waitFor(() => expect(world.chaos.hanging()).toBe(1));
    world.chaos.refuse();
    await world.store.records.settle(claim, answer);
    world.chaos.lose();
    await second;
    world.chaos.recover();
    await world.store.tellAll();
    expect(await ask(world.other.records, later(claim, 2))).toMatchObject({ outcome: answer });
  });

  test('is told again if it was another while it was being told', async () => {
    const told: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const untold = new Untold(async () => undefined);
    untold.keepRecord(account, 'nonce', async () => {
      told.push('first');
      await promise;
    });
    const telling = untold.tell(account);
    untold.keepRecord(account, 'nonce', async () => void told.push('second'));
    resolve();
    await telling;
    await untold.tell(account);
    expect([told.at(-1), untold.accounts]).toEqual(['second', 0]);
  });

  test('comes after what its write touched', async () => {
    const claim = await claimed();
    world.chaos.refuse();
    await world.store.answers.touch(account, ['subusers']);
    await world.store.records.settle(claim, answer);
    world.chaos.recover();
    world.chaos.heard();
    await world.store.tellAll();
    expect(verbs().slice(0, 2)).toEqual(['touch', 'settle']);
    expect(await ask(world.other.records, later(claim, 1))).toMatchObject({ outcome: answer });
  });

  test('is not told where what its write touched cannot be', async () => {
    const claim = await claimed();
    world.chaos.refuse();
    await world.store.answers.touch(account, ['subusers']);
    await world.store.records.settle(claim, answer);
    world.chaos.refuse('touch');
    world.chaos.heard();
    await expect(world.store.tellAll()).rejects.toThrow('not all is told');
    await expect(world.store.tellAll()).rejects.toThrow('not all is told');
    expect(await ask(world.other.records, later(claim, 1))).toMatchObject({ outcome: 'under_way' });
    expect(verbs()).toEqual([]);
  });

  test('gives way to the last word of its request', async () => {
    const claim = await claimed();
    world.chaos.refuse();
    await world.store.records.settle(claim, 'unknown');
    await world.store.records.settle(claim, answer);
    world.chaos.recover();
    world.chaos.heard();
    await world.store.tellAll();
    expect(verbs()).toEqual(['settle']);
    expect(await ask(world.other.records, later(claim, 1))).toMatchObject({ outcome: answer });
  });

  test('does not take the place of another request’s record', async () => {
    const claim = claimOf({ account });
    await world.store.records.claim(claim);
    world.chaos.refuse();
    await world.store.records.settle(claim, answer);
    world.pass(20_000);
    const second = later(claim, 20_000, { fingerprint: 'second' });
    expect(await ask(world.other.records, second)).toBeUndefined();
    world.chaos.recover();
    await world.store.tellAll();
    expect(await ask(world.other.records, later(claim, 20_001))).toMatchObject({ fingerprint: 'second' });
  });

  test('that was a release frees the key once it is told', async () => {
    const claim = await claimed();
    world.chaos.refuse();
    await world.store.records.release(claim);
    expect(await ask(world.other.records, later(claim, 1))).toMatchObject({ outcome: 'under_way' });
    world.chaos.recover();
    await world.store.tellAll();
    expect(await ask(world.other.records, later(claim, 1))).toBeUndefined();
  });
});

describe('what is kept is bounded:', () => {
  test('many tags of an account become everything of it', async () => {
    const tell = vi.fn<(account: string, tags: readonly Tag[]) => Promise<void>>(async () => undefined);
    const untold = new Untold(tell);
    for (let n = 0; n < 32; n += 1) untold.keepTags('few', [`tag-${n}`]);
    for (let n = 0; n < 33; n += 1) untold.keepTags('many', [`tag-${n}`]);
    await untold.tell('few');
    await untold.tell('many');
    expect(tell.mock.calls.map(([name, tags]) => [name, tags.length])).toEqual([
      ['few', 32],
      ['many', 1],
    ]);
    expect(tell).toHaveBeenLastCalledWith('many', ['*']);
  });

  test('copies of any tag are worthless after that', async () => {
    await keep(world.other.answers, place, entryOf('"before"'));
    world.chaos.refuse();
    for (let n = 0; n < 40; n += 1) await world.store.answers.touch(account, [`subusers/${n}`]);
    world.chaos.recover();
    await world.store.tellAll();
    expect(await heldIn(world.other.answers, place)).toBeUndefined();
  });

  test('accounts beyond a hundred thousand make the oldest go, and all are told by a beat', async () => {
    const told: string[] = [];
    const untold = new Untold(async (name) => void told.push(name));
    for (let n = 0; n < 100_002; n += 1) untold.keepTags(`account-${n}`, ['one']);
    expect(untold.accounts).toBe(100_000);
    await untold.tellAll();
    expect(untold.accounts).toBe(0);
    expect([told.length, told[0], told.at(-1)]).toEqual([100_000, 'account-2', 'account-100001']);
  });
});
