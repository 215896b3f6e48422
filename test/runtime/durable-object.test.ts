import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MAX_VALUE_BYTES, type Save } from '../../src/store/shared/engine.ts';
import type { WriteBegin, WriteEnded } from '../../src/store/writes.ts';
import { engineContract } from '../store/engine-contract.ts';
import { withBuffers } from '../support/buffers.ts';
import { ObjectWorld } from './durable-object-world.ts';

let world: ObjectWorld;

beforeAll(async () => {
  world = await ObjectWorld.start();
});

afterAll(() => world.close());

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MARK_MS = 5 * MINUTE_MS;
/** Time that passes during a test. */
const SLACK_MS = 3_000;

const SEALED = new TextEncoder().encode('a sealed value');
const KEY = { key: 'key', tags: ['own tag', 'group'] };
const OTHER_KEY = { key: 'other', tags: ['another tag'] };
const WINDOW = { name: 'requests', lengthMs: 30 * MINUTE_MS, limit: 80 };
const RECORD = { key: 'idempotency key', value: SEALED, lifeMs: DAY_MS };

engineContract('the object of an account keeps the contract of the engine', async () => ({
  engine: withBuffers(world),
  pass: (ms) => world.pass(ms),
  slackMs: SLACK_MS,
}));

/** Less than `ms` by no more than has passed since. */
const about = (ms: number): unknown => ({
  asymmetricMatch: (actual: unknown) => typeof actual === 'number' && actual <= ms && actual > ms - SLACK_MS,
});

describe('the object of an account', () => {
  let account: string;

  beforeEach(() => {
    account = randomUUID();
  });

  const ask = async (key = KEY) => {
    const { now, keys } = await world.snapshot(account, { keys: [{ ...key, lease: randomUUID() }] });
    return { now, reply: keys[0] };
  };

  const find = async (key = KEY) => {
    const { now, reply } = await ask(key);
    if (!reply) throw new Error('it is under a mark');
    return { askedAt: now, ...reply };
  };

  const save = ({ version, askedAt }: Pick<Save, 'version' | 'askedAt'>, lifeMs: number, key = KEY) =>
    world.save(account, { ...key, version, askedAt, copy: { value: SEALED, freshMs: lifeMs, lifeMs } });

  const keep = async (lifeMs = DAY_MS, key = KEY) => {
    const asked = await find(key);
    expect(await save(asked, lifeMs, key)).toBe('kept');
    return asked;
  };

  const count = async (times: number) => {
    let used = 0;
    for (let n = 0; n < times; n++) used = (await world.snapshot(account, { window: WINDOW, keys: [] })).use?.used ?? 0;
    return used;
  };

  const begin = (changes: Partial<WriteBegin> = {}) =>
    world.beginWrite(account, { nonce: 'write', tags: KEY.tags, busyMs: 15_000, markMs: MARK_MS, ...changes });

  const end = (outcome: WriteEnded['end'], changes: Partial<WriteEnded> = {}) =>
    world.endWrite(account, { nonce: 'write', tags: KEY.tags, markMs: MARK_MS, end: outcome, ...changes });

  /** Its time is there, and what it does then is done. */
  const untilAlarm = async () => {
    await world.pass((await world.alarmIn(account)) ?? 0);
    await world.ring(account);
  };

  const isEmpty = async () => {
    expect([await world.tables(account), await world.alarmIn(account)]).toEqual([[], undefined]);
    expect(await world.onDisk(account)).not.toContain('CREATE TABLE kept');
  };

  test('writes nothing to disk for a made-up credential', async () => {
    const asked = await find();
    const before = await world.onDisk(account);
    expect(await count(9)).toBe(9);
    await world.save(account, { ...KEY, ...asked, copy: undefined, drop: 'everything' });
    expect(await save(asked, DAY_MS)).toBe('void');
    await end('refused', { dropEverything: true });
    await isEmpty();
    expect(await world.onDisk(account)).toBe(before);
  });

  test('takes a value as large as may be, and says of a larger one that there is no room', async () => {
    const asked = await find();
    const saveBytes = (bytes: number) => {
      const copy = { value: new Uint8Array(bytes).fill(120), freshMs: DAY_MS, lifeMs: DAY_MS };
      return world.save(account, { ...KEY, ...asked, copy });
    };
    expect(await saveBytes(MAX_VALUE_BYTES + 1)).toBe('full');
    expect(await world.tables(account)).toEqual([]);
    expect(await saveBytes(MAX_VALUE_BYTES)).toBe('kept');
    expect((await find()).copy?.value?.byteLength).toBe(MAX_VALUE_BYTES);
    const record = { ...RECORD, value: new Uint8Array(MAX_VALUE_BYTES) };
    await end('done', { record });
    expect(await begin({ nonce: 'next', record: RECORD })).toMatchObject({ is: 'record' });
  });

  describe('sweeps away', () => {
    test.each<[string, readonly string[], () => Promise<unknown>]>([
      ['a copy', ['copy key', 'versions'], () => keep(2 * MINUTE_MS)],
      ['a record', ['record idempotency key'], () => end('done', { record: { ...RECORD, lifeMs: 2 * MINUTE_MS } })],
      ['a mark', ['mark write'], () => begin({ markMs: 2 * MINUTE_MS })],
      ['a cooldown', ['cooldown'], () => world.change(account, { cooldownMs: 2 * MINUTE_MS })],
    ])('%s, a minute after it is over and no sooner, and the table with it', async (_, kept, write) => {
      await write();
      expect(await world.alarmIn(account)).toEqual(about(3 * MINUTE_MS));
      await world.ring(account);
      expect(await world.kept(account)).toEqual(kept);
      await untilAlarm();
      await isEmpty();
      await keep();
      expect((await find()).copy?.value).toEqual(SEALED);
    });

    test('no mark and no record that still counts', async () => {
      await keep(MINUTE_MS, OTHER_KEY);
      await begin({ record: RECORD });
      await untilAlarm();
      expect(await world.kept(account)).toEqual(['mark write', 'record idempotency key', 'versions']);
      expect((await ask()).reply).toBeUndefined();
      await untilAlarm();
      expect(await world.kept(account)).toEqual(['record idempotency key', 'versions']);
      await untilAlarm();
      await isEmpty();
    });

    test('versions with the last of all: none is good that was given out before', async () => {
      const asked = await keep(MINUTE_MS);
      await untilAlarm();
      expect(await save(asked, MINUTE_MS)).toBe('void');
    });

    test('tables of an earlier release, and never a secret', async () => {
      await world.leaveTable(account, 'copies');
      await world.ring(account);
      expect(await world.tables(account)).toEqual([]);
      const secret = await world.secret(account);
      await keep(MINUTE_MS);
      await untilAlarm();
      expect(await world.alarmIn(account)).toBeUndefined();
      expect(await world.secret(account)).toBe(secret);
    });
  });

  describe('killed and started again on the same disk', () => {
    const [full, short, made] = [randomUUID(), randomUUID(), randomUUID()];
    const left = { secret: '', old: { version: '', askedAt: 0 }, asked: { version: '', askedAt: 0 }, made: '' };

    beforeAll(async () => {
      account = full;
      left.old = await keep();
      await begin();
      await end('done');
      left.asked = await keep();
      await begin({ nonce: 'another', tags: OTHER_KEY.tags, purchase: 'plan', record: RECORD });
      await end('not_sent', { nonce: 'late' });
      await world.change(account, { cooldownMs: 5 * MINUTE_MS });
      await count(15);
      left.secret = await world.secret(account);
      account = short;
      await keep(2 * MINUTE_MS);
      account = made;
      left.made = (await find()).version;
      expect(world.complaints()).toEqual([]);
      await world.pass(MINUTE_MS);
      await world.restart();
    });

    beforeEach(() => {
      account = full;
    });

    test('knows copies and versions', async () => {
      expect(await find()).toMatchObject({ version: left.asked.version, copy: { value: SEALED } });
      expect(await save(left.old, DAY_MS)).toBe('void');
    });

    test('knows marks, records, the cooldown and its secret', async () => {
      expect((await ask(OTHER_KEY)).reply).toBeUndefined();
      expect(await begin({ nonce: 'late' })).toEqual({ is: 'over' });
      expect(await begin({ record: RECORD })).toEqual({ is: 'record', value: SEALED, isOver: true });
      expect(await begin({ purchase: 'plan' })).toEqual({ is: 'equal', standing: 'unknown' });
      expect(await begin()).toEqual({ is: 'cooldown', cooldownMs: about(4 * MINUTE_MS) });
      expect(await world.secret(account)).toBe(left.secret);
    });

    test('knows its windows, rounded up', async () => {
      expect(await count(1)).toBe(20);
    });

    test('has other versions where it kept none', async () => {
      account = made;
      expect(await save({ version: left.made, askedAt: 0 }, DAY_MS)).toBe('void');
    });

    test('sweeps when it would have', async () => {
      account = short;
      await keep(DAY_MS, OTHER_KEY);
      expect(await world.alarmIn(account)).toEqual(about(2 * MINUTE_MS));
      await untilAlarm();
      expect(await world.kept(account)).toEqual(['copy other', 'versions']);
    });
  });

  test('has made workerd complain of nothing', () => {
    expect(world.complaints()).toEqual([]);
  });
});
