import { beforeEach, describe, expect, test } from 'vitest';
import { type KeyQuestion, MAX_VALUE_BYTES, type Save } from '../../src/store/shared/engine.ts';
import type { WriteBegin, WriteEnded } from '../../src/store/writes.ts';
import { withBuffers } from '../support/buffers.ts';
import { type ObjectEngine, objectEngine } from '../support/object-storage.ts';
import { engineContract } from './engine-contract.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const BUSY_MS = 15_000;
const MARK_MS = 75_000;

const ACCOUNT = 'account';
const TAGS = ['own tag', 'group'];
const VALUE = new Uint8Array([1, 2, 3]);
const WINDOW = { name: 'requests', lengthMs: MINUTE_MS, limit: 80 };

let engine: ObjectEngine;

beforeEach(() => {
  engine = objectEngine();
});

const ask = async (question: Partial<KeyQuestion> = {}) => {
  const { now, keys } = await engine.snapshot(ACCOUNT, { keys: [{ key: 'key', tags: TAGS, ...question }] });
  return { now, reply: keys[0] };
};

/** Of what may be given. */
const find = async (question: Partial<KeyQuestion> = {}) => {
  const { now, reply } = await ask(question);
  if (!reply) throw new Error('it is under a mark');
  return { askedAt: now, ...reply };
};

const COPY = { value: VALUE, freshMs: MINUTE_MS, lifeMs: DAY_MS };

const save = (asked: { readonly version: string; readonly askedAt: number }, changes: Partial<Save> = {}) =>
  engine.save(ACCOUNT, {
    key: 'key',
    tags: TAGS,
    version: asked.version,
    askedAt: asked.askedAt,
    copy: COPY,
    ...changes,
  });

const keep = async (changes: Partial<Save> = {}) => {
  const { key, tags = TAGS } = changes;
  const asked = await find({ tags, ...(key !== undefined && { key }) });
  expect(await save(asked, changes)).toBe('kept');
  return asked;
};

const RECORD = { key: 'idempotency key', value: VALUE, lifeMs: DAY_MS };

const begin = (changes: Partial<WriteBegin> = {}) =>
  engine.beginWrite(ACCOUNT, { nonce: 'write', tags: TAGS, busyMs: BUSY_MS, markMs: MARK_MS, ...changes });

const end = (outcome: WriteEnded['end'], changes: Partial<WriteEnded> = {}) =>
  engine.endWrite(ACCOUNT, { nonce: 'write', tags: TAGS, markMs: MARK_MS, end: outcome, ...changes });

/** Says how many there have been then. */
const count = async (times: number, window = WINDOW) => {
  let used = 0;
  for (let n = 0; n < times; n++) used = (await engine.snapshot(ACCOUNT, { window, keys: [] })).use?.used ?? 0;
  return used;
};

const stored = () => engine.storageOf(ACCOUNT).kept();

engineContract('the objects of accounts keep the contract of the engine', async () => {
  const objects = objectEngine();
  return { engine: withBuffers(objects), pass: async (ms) => objects.pass(ms), slackMs: 1 };
});

test('a lease of a version that was replaced is not waited for', async () => {
  await find({ lease: 'one' });
  await begin();
  await end('done');
  expect((await find({ lease: 'other', waitedFor: 'one' })).lease).toBe('other');
});

test('no lease follows one that ended with a copy which the waiting instance does not have', async () => {
  const asked = await find({ lease: 'holder' });
  await save(asked, { lease: 'holder', copy: { ...COPY, freshMs: 0 } });
  const waiting = { lease: 'one', waitedFor: 'holder' };
  const { version, askedAt } = asked;
  const have = { version, askedAt, isFresh: false };
  expect(await find({ ...waiting, have: { ...have, version: 'another' } })).toMatchObject({ lease: undefined });
  expect(await find({ ...waiting, have })).toMatchObject({ lease: 'one' });
});

test('there is no room for a value larger than a row', async () => {
  const asked = await find();
  const large = { ...COPY, value: new Uint8Array(MAX_VALUE_BYTES + 1) };
  expect(await save(asked, { copy: large })).toBe('full');
  expect(stored()).toEqual([]);
});

test('what is dropped is deleted', async () => {
  const other = { key: 'other', tags: ['its own tag', 'group'] };
  const asked = await keep();
  await keep(other);
  expect(await save(asked, { copy: undefined, drop: 'key' })).toBe('void');
  expect(stored()).toEqual(['copy other', 'versions']);
  await save(asked, { copy: undefined, drop: 'everything' });
  expect(stored()).toEqual(['versions']);
  await keep();
  await end('refused', { dropEverything: true });
  expect(stored()).toEqual(['versions']);
});

test('a write that is not begun leaves nothing but its window', async () => {
  const window = { ...WINDOW, limit: 1 };
  await begin({ window });
  await end('not_sent');
  expect(await begin({ nonce: 'next', window, record: RECORD })).toMatchObject({ is: 'limit', use: { used: 2 } });
  await engine.change(ACCOUNT, { cooldownMs: 1_000 });
  expect(await begin({ nonce: 'next', record: RECORD })).toEqual({ is: 'cooldown', cooldownMs: 1_000 });
  expect(stored()).toEqual(['cooldown', 'window requests']);
});

test('a write that is over is not begun again, with a record or while it is of unknown outcome', async () => {
  await begin({ record: RECORD });
  await end('done', { record: RECORD });
  expect(await begin({ record: RECORD })).toEqual({ is: 'over' });
  await begin({ nonce: 'next' });
  await end('unknown', { nonce: 'next' });
  expect(await begin({ nonce: 'next' })).toEqual({ is: 'over' });
});

describe('an object that was evicted and is made again', () => {
  test('knows copies, versions, marks, records and the cooldown', async () => {
    const old = await keep();
    await begin();
    await end('done');
    const asked = await keep();
    await begin({ nonce: 'another', tags: ['another tag'], purchase: 'plan', record: RECORD });
    await end('not_sent', { nonce: 'late' });
    await engine.change(ACCOUNT, { cooldownMs: 1_000 });
    engine.putAway();
    expect(await save(old)).toBe('void');
    expect(await find()).toMatchObject({ version: asked.version, copy: { value: VALUE } });
    expect((await ask({ tags: ['another tag'] })).reply).toBeUndefined();
    expect(await begin({ nonce: 'late' })).toEqual({ is: 'over' });
    expect(await begin({ record: RECORD })).toMatchObject({ is: 'record', value: VALUE });
    expect(await begin({ purchase: 'plan' })).toMatchObject({ is: 'equal' });
    expect(await begin()).toEqual({ is: 'cooldown', cooldownMs: 1_000 });
  });

  test('has no copy from before a mark that expired meanwhile', async () => {
    const asked = await keep();
    await begin();
    engine.pass(MARK_MS);
    engine.putAway();
    const now = await find();
    expect([now.version === asked.version, now.copy]).toEqual([false, undefined]);
    await keep();
    engine.putAway();
    expect((await find()).copy?.value).toEqual(VALUE);
  });

  test('takes no copy of versions that it had not stored', async () => {
    const asked = await find();
    engine.putAway();
    expect(await save(asked)).toBe('void');
    await keep();
  });

  test('has forgotten leases', async () => {
    await find({ lease: 'one' });
    engine.putAway();
    expect((await find({ lease: 'other' })).lease).toBe('other');
  });

  describe('has of a window', () => {
    test.each([
      [9, 1],
      [10, 20],
      [15, 20],
      [19, 20],
      [20, 30],
      [79, 80],
      [80, 90],
    ])('that had counted %i never forgotten more than an eighth: the next is number %i', async (before, next) => {
      expect(await count(before)).toBe(before);
      engine.putAway();
      expect(await count(1)).toBe(next);
    });

    test.each([1, 2, 7, 8, 9, 100, 601])('with a limit of %i not forgotten that it was reached', async (limit) => {
      await count(limit, { ...WINDOW, limit });
      engine.putAway();
      expect(await count(1, { ...WINDOW, limit })).toBeGreaterThan(limit);
    });

    test('over its limit nothing more to write', async () => {
      await count(WINDOW.limit);
      const { rowsWritten } = engine.storageOf(ACCOUNT);
      await count(WINDOW.limit);
      expect(engine.storageOf(ACCOUNT).rowsWritten).toBe(rowsWritten);
      engine.putAway();
      await count(WINDOW.limit);
      expect(engine.storageOf(ACCOUNT).rowsWritten).toBe(rowsWritten);
    });

    test('not forgotten when it ends', async () => {
      await count(10);
      engine.pass(20_000);
      engine.putAway();
      expect((await engine.snapshot(ACCOUNT, { window: WINDOW, keys: [] })).use?.leftMs).toBe(40_000);
      engine.pass(40_000);
      engine.putAway();
      expect(await count(1)).toBe(1);
    });
  });

  test('has its alarm at the same time', async () => {
    await keep({ copy: { ...COPY, lifeMs: MINUTE_MS } });
    const { alarmAt } = engine.storageOf(ACCOUNT);
    engine.pass(MINUTE_MS + 1_000);
    engine.putAway();
    await keep({ key: 'longer' });
    expect(engine.storageOf(ACCOUNT).alarmAt).toBe(alarmAt);
    engine.pass(MINUTE_MS);
    expect(stored()).toEqual(['copy longer', 'versions']);
  });
});

describe('on disk', () => {
  test('there is nothing of a made-up credential', async () => {
    const asked = await find({ lease: 'one' });
    await engine.snapshot(ACCOUNT, { window: WINDOW, keys: [] });
    await save(asked, { lease: 'one', copy: undefined, drop: 'everything' });
    await end('refused', { dropEverything: true });
    engine.putAway();
    await find();
    const { rowsWritten, alarmAt } = engine.storageOf(ACCOUNT);
    expect([engine.storageOf(ACCOUNT).tables(), rowsWritten, alarmAt]).toEqual([[], 0, undefined]);
  });

  test('nothing is left of a refused write after the alarm', async () => {
    await begin({ record: RECORD });
    expect(stored()).toEqual(['mark write', 'record idempotency key']);
    await end('refused', { record: RECORD });
    engine.pass(MARK_MS + MINUTE_MS);
    expect([engine.storageOf(ACCOUNT).tables(), engine.storageOf(ACCOUNT).alarmAt]).toEqual([[], undefined]);
  });

  test('what has expired is deleted a minute later, and everything with the last of it, tables of earlier releases too', async () => {
    const storage = engine.storageOf(ACCOUNT);
    storage.sql.exec('CREATE TABLE records (key TEXT)');
    const asked = await keep({ copy: { ...COPY, lifeMs: 1_000 } });
    await begin({ record: { ...RECORD, lifeMs: 10 * MINUTE_MS } });
    await engine.change(ACCOUNT, { cooldownMs: 5 * MINUTE_MS });
    await engine.snapshot(ACCOUNT, { window: { ...WINDOW, limit: 8 }, keys: [] });
    const rest = ['record idempotency key', 'versions'];
    for (const [ms, kept] of [
      [MINUTE_MS, ['cooldown', 'copy key', 'mark write', ...rest, 'window requests']],
      [1_000, ['cooldown', 'mark write', ...rest]],
      [2 * MINUTE_MS, ['cooldown', ...rest]],
      [5 * MINUTE_MS, rest],
      [5 * MINUTE_MS, []],
    ] as const) {
      engine.pass(ms);
      expect(stored()).toEqual(kept.toSorted());
    }
    expect([storage.tables(), storage.alarmAt]).toEqual([[], undefined]);
    expect(await save(asked)).toBe('void');
  });

  test('there is what is kept after that, and an alarm for it', async () => {
    const asked = await keep({ copy: { ...COPY, lifeMs: 1_000 } });
    engine.pass(DAY_MS);
    expect(stored()).toEqual([]);
    expect(await save(asked)).toBe('void');
    await keep();
    expect(engine.storageOf(ACCOUNT).alarmAt).toBeDefined();
    engine.putAway();
    expect((await find()).copy?.value).toEqual(VALUE);
  });

  test('the alarm of an earlier release removes its tables', async () => {
    const storage = engine.storageOf(ACCOUNT);
    storage.sql.exec('CREATE TABLE copies (key TEXT)');
    await storage.setAlarm(0);
    engine.pass(0);
    expect(storage.tables()).toEqual([]);
  });

  test('there is a secret, which no alarm deletes', async () => {
    const secret = engine.secret(ACCOUNT);
    await keep({ copy: { ...COPY, lifeMs: 1_000 } });
    engine.pass(DAY_MS);
    engine.putAway();
    expect([engine.secret(ACCOUNT), engine.storageOf(ACCOUNT).alarmAt]).toEqual([secret, undefined]);
  });

  test('a copy is one row, a write with a key two and two deletions at most', async () => {
    await keep();
    const storage = engine.storageOf(ACCOUNT);
    const writing = async (run: () => Promise<unknown>) => {
      const before = storage.rowsWritten;
      await run();
      return storage.rowsWritten - before;
    };
    expect(await writing(() => keep())).toBe(1);
    expect(await writing(() => begin({ record: RECORD }))).toBeLessThanOrEqual(2 + 1); // and the alarm
    expect(await writing(() => end('done', { record: RECORD }))).toBe(3); // the record, the mark, the versions
    expect(await writing(() => find())).toBe(0);
  });
});

test('random text, which earlier releases had as the epoch of sessions, is the first', async () => {
  const stateOf = async () => (await engine.snapshot(ACCOUNT, { session: 'one', keys: [] })).session;
  await engine.change(ACCOUNT, { revoked: { epoch: 7, lifeMs: DAY_MS } });
  engine.storageOf(ACCOUNT).sql.exec(`UPDATE kept SET facts = '"random"' WHERE kind = 'epoch'`);
  expect(await stateOf()).toEqual({ isRevoked: false, epoch: 1 });
  await engine.change(ACCOUNT, { revoked: { epoch: 2, lifeMs: DAY_MS } });
  expect(await stateOf()).toEqual({ isRevoked: false, epoch: 2 });
});
