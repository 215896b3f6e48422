import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { NewRecord, PlaceReply } from '../../src/store/shared/remote.ts';
import { answersContract, entryOf, heldIn, keep, newAccount, placeIn } from '../store/contract.ts';
import { ENGINE_SLACK_MS, type SharedEngine } from '../store/engine.ts';
import { limitsContract, MINUTE_MS, within } from '../store/limits.ts';
import { ask, claimOf, DAY_MS, recordsContract } from '../store/records.ts';
import { sharingContract } from '../store/sharing.ts';
import { visitsContract } from '../store/visits.ts';
import { ObjectWorld } from './durable-object-world.ts';

let world: ObjectWorld;
let engine: SharedEngine;

beforeAll(async () => {
  world = await ObjectWorld.start();
  engine = world.engine();
});

afterAll(() => world.close());

for (const contract of [answersContract, visitsContract, recordsContract, limitsContract, sharingContract])
  contract('the store of the workers', () => engine);

const bytesOf = (text: string) => new TextEncoder().encode(text);
const SEALED = bytesOf('a sealed value');
const PLACE = { key: 'place', tags: ['tag', 'group'], have: undefined };
const WINDOW = { name: 'requests', lengthMs: MINUTE_MS };

const about = (ms: number) => within(ms, ENGINE_SLACK_MS);

const recordOf = (changes: Partial<NewRecord> = {}): NewRecord => ({
  key: 'record',
  nonce: crypto.randomUUID(),
  stage: 'settled',
  value: SEALED,
  lifeMs: DAY_MS,
  ...changes,
});

describe('the object of an account', () => {
  let account: string;

  beforeEach(() => {
    account = newAccount();
  });

  const find = async (place = PLACE): Promise<PlaceReply> => {
    const [reply] = (await world.visit(account, { places: [place] })).places;
    if (!reply) throw new Error('one place has one reply');
    return reply;
  };

  const save = (versions: string, lifeMs: number, place = PLACE) =>
    world.save(account, { ...place, versions, askedAt: 1_780_000_000_000.5, value: SEALED, lifeMs });

  /** A copy that was looked for and is kept from now on. */
  const keepCopy = async (lifeMs: number, place = PLACE): Promise<string> => {
    const { versions } = await find(place);
    expect(await save(versions, lifeMs, place)).toBe(true);
    return versions;
  };

  /** Its time is there, and what it does then is done. */
  const untilAlarm = async () => {
    await world.pass((await world.alarmIn(account)) ?? 0);
    await world.ring(account);
  };

  describe('writes nothing to disk', () => {
    test('for a visit of who comes with a made-up credential, whatever is counted, touched and taken then', async () => {
      const { versions } = await find();
      const before = await world.onDisk(account);
      expect((await world.visit(account, { places: [PLACE], window: WINDOW })).use?.used).toBe(1);
      await world.touch(account, ['tag']);
      await world.touch(account, ['*']);
      expect(await world.takeTurn(account, { key: 'place', versions, instance: 'one', lifeMs: 1_000 })).toBe(true);
      await world.passTurn(account, { key: 'place', instance: 'one' });
      await world.release(account, recordOf());
      expect(await world.advance(account, recordOf())).toBe(false);
      expect(await save(versions, MINUTE_MS)).toBe(false);
      expect([await world.tables(account), await world.alarmIn(account)]).toEqual([[], undefined]);
      expect(await world.onDisk(account)).toBe(before);
    });

    test('that it does not write with the first copy', async () => {
      await keepCopy(MINUTE_MS);
      expect(await world.tables(account)).toEqual(['notes', 'copies', 'records']);
      expect(await world.onDisk(account)).toContain('CREATE TABLE copies');
    });
  });

  describe('sweeps away', () => {
    test.each<[string, () => Promise<unknown>]>([
      ['a copy', () => keepCopy(2 * MINUTE_MS)],
      ['a record', () => world.settle(account, recordOf({ lifeMs: 2 * MINUTE_MS }))],
      ['a hold', () => world.hold(account, 2 * MINUTE_MS)],
    ])('%s, when it is over, and all tables with the last of them', async (_, write) => {
      await write();
      expect(await world.alarmIn(account)).toEqual(about(2 * MINUTE_MS));
      await world.ring(account);
      expect(await world.tables(account)).toHaveLength(3);
      expect(await world.alarmIn(account)).toEqual(about(2 * MINUTE_MS));
      await untilAlarm();
      expect([await world.tables(account), await world.alarmIn(account)]).toEqual([[], undefined]);
      expect(await world.onDisk(account)).not.toContain('CREATE TABLE copies');
      await keepCopy(MINUTE_MS);
      expect(await find()).toMatchObject({ value: SEALED });
    });

    test('no sooner than after a minute, and never gives anybody what is over until then', async () => {
      await keepCopy(1_000);
      await world.claim(account, recordOf({ lifeMs: 1_000 }));
      expect(await world.alarmIn(account)).toEqual(about(MINUTE_MS));
      await world.pass(1_000);
      expect((await find()).value).toBeUndefined();
      expect(await world.advance(account, recordOf())).toBe(false);
      expect(await world.rows(account)).toBe(2);
      await untilAlarm();
      expect(await world.tables(account)).toEqual([]);
    });

    test('what is over, and wakes again for what is not', async () => {
      const other = { ...PLACE, key: 'other' };
      await keepCopy(5 * MINUTE_MS);
      await keepCopy(2 * MINUTE_MS, other);
      await world.settle(account, recordOf({ lifeMs: 3 * MINUTE_MS }));
      for (const [rows, minutes] of [
        [3, 2],
        [2, 1],
        [1, 2],
      ] as const) {
        expect([await world.rows(account), await world.alarmIn(account)]).toEqual([rows, about(minutes * MINUTE_MS)]);
        if (rows === 1) expect([(await find()).value, (await find(other)).value]).toEqual([SEALED, undefined]);
        await untilAlarm();
      }
      expect(await world.tables(account)).toEqual([]);
    });

    test('its versions with the last of all: none is good that was given out before', async () => {
      await world.touch(account, ['tag']);
      const versions = await keepCopy(MINUTE_MS);
      await untilAlarm();
      expect((await find()).versions).not.toBe(versions);
      expect(await save(versions, MINUTE_MS)).toBe(false);
      await world.touch(account, ['tag']);
      expect(await world.tables(account)).toEqual([]);
    });

    test('everything but a secret', async () => {
      const secret = await world.secret(account);
      await keepCopy(MINUTE_MS);
      await untilAlarm();
      expect([await world.rows(account), await world.alarmIn(account)]).toEqual([0, undefined]);
      expect(await world.secret(account)).toBe(secret);
    });
  });

  describe('keeps of what is larger than a row', () => {
    const LARGE = `"${'x'.repeat(2_500_000)}"`;

    test('no answer, which stays the instance’s own', async () => {
      const place = placeIn(account);
      const large = world.engine();
      expect(await keep(large.store.answers, place, entryOf(LARGE))).toBe(true);
      expect(await heldIn(large.other.answers, place)).toBeUndefined();
      expect(await world.tables(account)).toEqual([]);
    });

    test('that there was a write, whose outcome is unknown', async () => {
      const claim = claimOf({ account });
      expect(await ask(engine.store.records, claim)).toBeUndefined();
      await engine.store.records.settle(claim, { status: 200, text: LARGE });
      const known = await ask(engine.other.records, { ...claim, nonce: crypto.randomUUID() });
      expect(known).toEqual({ fingerprint: 'print', outcome: 'unknown' });
    });

    test('everything that is a little smaller', async () => {
      const place = placeIn(account);
      const text = `"${'x'.repeat(1_890_000)}"`;
      await keep(engine.store.answers, place, entryOf(text));
      expect((await heldIn(engine.other.answers, place))?.length).toBe(text.length);
    });
  });

  test('sends no value to who has that very copy', async () => {
    const versions = await keepCopy(DAY_MS);
    const askedAt = 1_780_000_000_000.5;
    const older = { versions, askedAt: askedAt - 1 };
    const places = [{ versions, askedAt }, older].map((have) => ({ ...PLACE, have }));
    const ageMs = expect.any(Number) as unknown;
    const replies = [
      { versions, askedAt },
      { versions, askedAt, ageMs, value: SEALED },
    ];
    expect((await world.visit(account, { places })).places).toEqual(replies);
  });

  test('keeps versions of a few tags: of an account that touches more, everything is touched at times', async () => {
    await keepCopy(DAY_MS);
    const tags = Array.from({ length: 64 }, (_, n) => `tag ${n}`);
    for (const tag of tags) await world.touch(account, [tag]);
    expect((await find()).value).toEqual(SEALED);
    await world.touch(account, ['one more']);
    expect((await find()).value).toBeUndefined();
    await keepCopy(DAY_MS);
  });

  describe('killed and started again on the same disk', () => {
    const kept = { versions: '', old: '', touched: '', secret: '' };
    const owned = recordOf({ stage: 'sent', lifeMs: 2 * DAY_MS });
    const touched = { ...PLACE, key: 'touched', tags: ['another tag'] };
    const [full, short, ending] = [newAccount(), newAccount(), newAccount()];

    beforeAll(async () => {
      account = full;
      kept.old = await keepCopy(DAY_MS);
      await world.touch(account, ['group']);
      kept.versions = await keepCopy(DAY_MS);
      kept.touched = await keepCopy(DAY_MS, touched);
      await world.touch(account, touched.tags);
      await world.claim(account, { ...owned, stage: 'claimed' });
      await world.advance(account, owned);
      await world.hold(account, 10 * MINUTE_MS);
      kept.secret = await world.secret(account);
      for (account of [short, ending]) await keepCopy(2 * MINUTE_MS);
      expect(world.complaints()).toEqual([]);
      await world.pass(MINUTE_MS);
      await world.restart();
    });

    beforeEach(() => {
      account = full;
    });

    test('finds a copy whose versions hold', async () => {
      expect(kept.versions).not.toBe(kept.old);
      const { ageMs, ...rest } = await find();
      expect(ageMs).toBeGreaterThanOrEqual(0);
      expect(rest).toEqual({ versions: kept.versions, askedAt: 1_780_000_000_000.5, value: SEALED });
    });

    test('refuses versions that were touched before', async () => {
      expect(await save(kept.old, DAY_MS)).toBe(false);
      expect((await find(touched)).value).toBeUndefined();
      expect(await save(kept.touched, DAY_MS, touched)).toBe(false);
    });

    test('knows records, whose they are, and since when', async () => {
      const known = await world.claim(account, recordOf());
      expect(known).toEqual({ stage: 'sent', value: SEALED, ageMs: about(MINUTE_MS) });
      expect(await world.advance(account, recordOf())).toBe(false);
      expect(await world.advance(account, owned)).toBe(true);
    });

    test('knows how long the upstream wants no calls, and its secret', async () => {
      expect((await world.visit(account, { places: [] })).heldMs).toEqual(about(9 * MINUTE_MS));
      expect(await world.secret(account)).toBe(kept.secret);
    });

    test('has other versions where it kept none', async () => {
      account = newAccount();
      const { versions } = await find();
      expect(world.complaints()).toEqual([]);
      await world.restart();
      expect(await save(versions, DAY_MS)).toBe(false);
    });

    test('sweeps when it would have', async () => {
      account = short;
      expect(await world.alarmIn(account)).toEqual(about(MINUTE_MS));
    });

    test('sweeps when it would have, also where something is kept since that lasts longer', async () => {
      account = ending;
      await keepCopy(DAY_MS, { ...PLACE, key: 'longer' });
      expect(await world.alarmIn(account)).toEqual(about(MINUTE_MS));
    });
  });

  test('has made workerd complain of nothing', () => {
    expect(world.complaints()).toEqual([]);
  });
});
