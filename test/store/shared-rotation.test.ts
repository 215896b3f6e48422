import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../../src/entry/node/digest.ts';
import type { Claim, Store } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { PATIENT } from './engine.ts';
import { secret } from '../support/secrets.ts';
import { entryOf, heldIn, keep, placeIn } from './contract.ts';
import { ask, claimOf } from './records.ts';
import { type RedisWorld, redisWorld } from './redis-world.ts';

const [OLD, NEW] = ['the old secret, long enough to be one', 'the new secret, long enough to be one'];
const ANSWER = { status: 201, text: '{"id":1}' };

const LISTS = { old: [OLD], both: [NEW, OLD], back: [OLD, NEW], new: [NEW] } as const;

type List = keyof typeof LISTS;

/** Those that stand side by side while secrets are exchanged. */
const SIDE_BY_SIDE: readonly (readonly [List, List])[] = [
  ['old', 'both'],
  ['both', 'old'],
  ['both', 'back'],
  ['back', 'both'],
  ['both', 'new'],
  ['new', 'both'],
  ['both', 'both'],
];

describe.skipIf(!hasRedis)(`while secrets are exchanged${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  const stores = {} as Record<List, Store>;
  let credential: string;

  beforeAll(async () => {
    world = await redisWorld();
    for (const list of Object.keys(LISTS) as List[]) stores[list] = (await world.open(LISTS[list])).store;
  });

  beforeEach(() => {
    credential = secret();
  });

  afterAll(() => world.close());

  /** The account as an instance with these secrets knows it. */
  const accountAt = (list: List) => nodeDigest(LISTS[list]).account(credential) as string;
  const placeAt = (list: List) => placeIn(accountAt(list));
  const claimAt = (list: List, changes: Partial<Claim> = {}) => claimOf({ account: accountAt(list), ...changes });

  const settleAt = async (list: List) => {
    const claim = claimAt(list);
    expect(await ask(stores[list].records, claim)).toBeUndefined();
    await stores[list].records.begin(claim);
    await stores[list].records.settle(claim, ANSWER);
  };

  test('an account has a name for each', () => {
    expect(accountAt('both')).toBe(`${accountAt('new')}.${accountAt('old')}`);
    expect(accountAt('back')).toBe(`${accountAt('old')}.${accountAt('new')}`);
  });

  describe.each(SIDE_BY_SIDE)('of two instances, %s and %s,', (one, other) => {
    test('one does not give out what was there before the other touched it', async () => {
      await keep(stores[one].answers, placeAt(one), entryOf('"before"'));
      expect(await heldIn(stores[one].answers, placeAt(one))).toBe('"before"');
      await stores[other].answers.touch(accountAt(other), ['subusers/5']);
      const { store: fresh } = await world.open(LISTS[one]);
      for (const { answers } of [stores[one], fresh]) expect(await heldIn(answers, placeAt(one))).toBeUndefined();
    });

    test('one does not keep what it began to read before the other touched it', async () => {
      const { versions } = await stores[one].answers.lookup(placeAt(one));
      await stores[other].answers.touch(accountAt(other), ['subusers']);
      await stores[one].answers.save(placeAt(one), entryOf('"late"'), versions);
      expect(await heldIn(stores[one].answers, placeAt(one))).toBeUndefined();
      await keep(stores[one].answers, placeAt(one), entryOf('"after"', { askedAt: 1_780_000_000_001 }));
      expect(await heldIn(stores[one].answers, placeAt(one))).toBe('"after"');
    });

    test('one finds the key taken that the other has taken', async () => {
      const claim = claimAt(one);
      expect(await ask(stores[one].records, claim)).toBeUndefined();
      expect(await ask(stores[other].records, claimAt(other))).toMatchObject({ outcome: 'under_way' });
      await stores[one].records.begin(claim);
      expect(await ask(stores[other].records, claimAt(other))).not.toBeUndefined();
      await stores[one].records.settle(claim, ANSWER);
      expect(await ask(stores[other].records, claimAt(other))).not.toBeUndefined();
    });

    test('one can have the key that the other has released', async () => {
      const claim = claimAt(one);
      await stores[one].records.claim(claim);
      await stores[one].records.release(claim);
      expect(await ask(stores[other].records, claimAt(other))).toBeUndefined();
    });

    test('a claim that found the key taken leaves nothing behind', async () => {
      const claim = claimAt(one);
      await stores[one].records.claim(claim);
      expect(await ask(stores[other].records, claimAt(other))).toMatchObject({ outcome: 'under_way' });
      await stores[one].records.release(claim);
      for (const list of ['old', 'new'] as const)
        expect(await ask(stores[list].records, claimAt(list)), list).toBeUndefined();
    });

    test('at most one gets a key that both want at once', async () => {
      for (let n = 0; n < 20; n += 1) {
        const claims = [one, other].map(async (list) => stores[list].records.claim(claimAt(list, { key: `key-${n}` })));
        const free = (await Promise.all(claims)).filter((known) => known === undefined);
        expect(free).toHaveLength(1);
      }
    });
  });

  test('an answer is replayed by whoever can open it', async () => {
    await settleAt('old');
    const known = { fingerprint: 'print', outcome: ANSWER };
    for (const list of ['both', 'back', 'old'] as const)
      expect(await ask(stores[list].records, claimAt(list)), list).toEqual(known);
  });

  test('whoever lists only the old one yet reads what is written under both', async () => {
    await settleAt('both');
    expect(await ask(stores.old.records, claimAt('old'))).toEqual({ fingerprint: 'print', outcome: ANSWER });
  });

  test('answers are shared again once all instances list the same', async () => {
    const { store } = await world.open(LISTS.both);
    await keep(stores.both.answers, placeAt('both'), entryOf('"shared"'));
    expect(await heldIn(store.answers, placeAt('both'))).toBe('"shared"');
  });

  describe('when only the new one is listed,', () => {
    test('what was written under both is found', async () => {
      await settleAt('both');
      expect(await ask(stores.new.records, claimAt('new'))).toEqual({ fingerprint: 'print', outcome: ANSWER });
    });

    test('what was written under the old one alone is not', async () => {
      await settleAt('old');
      expect(await ask(stores.new.records, claimAt('new'))).toBeUndefined();
    });
  });
});
