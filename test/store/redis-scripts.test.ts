import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ID, PROTOCOL, run, SILENCE_MS, TOKEN, USED_BY } from '../../src/entry/node/redis/scripts.ts';
import { FIRST_REV } from '../../src/store/sealed.ts';
import { hasRedis, relyOn, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;

const newToken = () => randomBytes(9).toString('base64url');

interface Told {
  readonly token: string;
  readonly since: number;
  readonly now: number;
  readonly full: number;
}

async function hello(own = ''): Promise<Told> {
  const reply = await run(redis.client, 'hello', [ID, TOKEN, USED_BY], [own, newToken()]);
  const [token, since, now, full] = reply as [Buffer, number, number, Buffer];
  return { token: String(token), since, now, full: Number(full) };
}

const swap = async (seen: string, note: string, { token = '', record }: { token?: string; record?: string } = {}) => {
  const keys = [ID, 'note', ...(record === undefined ? [] : ['record'])];
  const args = [
    token || (await redis.client.get(TOKEN)) || '',
    seen,
    note,
    60_000,
    ...(record ? [record, 60_000] : []),
  ];
  return String(await run(redis.client, 'swap', keys, args));
};

function copyOf(version: string, askedAt: number): Buffer {
  const head = Buffer.alloc(24);
  head.write(version.padEnd(16));
  head.writeDoubleBE(askedAt, 16);
  return Buffer.concat([head, randomBytes(9)]);
}

const FIRST = `${FIRST_REV} and more`;

/** Whether it is there afterwards. */
async function keep(version: string, askedAt: number, seen = FIRST_REV): Promise<boolean> {
  const copy = copyOf(version, askedAt);
  await run(redis.client, 'keep', ['note', 'copy'], [seen, FIRST, 90_000, copy, 60_000]);
  return copy.equals((await redis.client.getBuffer('copy')) ?? Buffer.alloc(0));
}

/** As if nobody had read the key of the protocol for so long. */
const leaveIdle = async (seconds: number) => {
  const dump = await redis.client.dumpBuffer(USED_BY);
  await redis.client.restore(USED_BY, 0, dump, 'REPLACE', 'IDLETIME', seconds);
};

const wellUsed = 10_000_000_000;

beforeAll(async () => {
  if (hasRedis) redis = await startRedis();
});
afterAll(() => redis?.close());

describe.skipIf(!hasRedis)(`HELLO${SKIPPED}`, () => {
  beforeEach(async () => {
    await redis.client.flushall();
    await relyOn(redis);
  });

  it('tells everybody the same store, and since when it is one', async () => {
    const first = await hello();
    expect(await hello(first.token)).toMatchObject({ token: first.token, since: 0 });
    expect(first.now).toBeGreaterThan(wellUsed);
    expect(first.full).toBe(0);
  });

  it('makes another store of an empty one, from now on', async () => {
    const before = await hello();
    await redis.client.flushall();
    const after = await hello(before.token);
    expect(after.token).not.toBe(before.token);
    expect(after.since).toBe(after.now);
    expect(await hello()).toMatchObject({ token: after.token, since: after.since });
  });

  it.each([
    ['whose run is another', () => redis.client.hset(ID, 'run', 'another')],
    ['whose token is missing', () => redis.client.del(TOKEN)],
    ['whose token is not that of its id', () => redis.client.set(TOKEN, newToken())],
  ])('makes another store of one %s', async (_, change) => {
    const before = await hello();
    await change();
    const after = await hello(before.token);
    expect([after.token === before.token, after.since]).toEqual([false, after.now]);
  });

  it('makes another store where the caller has seen one, unless it is among the last hundred', async () => {
    const seen = [(await hello()).token];
    for (let n = 0; n < 100; n++) seen.push((await hello(newToken())).token);
    expect(new Set(seen).size).toBe(101);
    const { token, since } = await hello(seen.at(-1));
    for (const own of seen) expect(await hello(own)).toMatchObject({ token, since });
    const after = await hello(newToken());
    expect([after.token === token, after.since]).toEqual([false, after.now]);
    expect((await hello(seen[0])).token).not.toBe(after.token);
  });

  it('makes another token where a caller has none and nobody has asked lately, for the same store', async () => {
    const before = await hello();
    await redis.client.hset(ID, 'heard', before.now - SILENCE_MS + 1_000);
    expect((await hello()).token).toBe(before.token);
    await redis.client.hset(ID, 'heard', before.now - SILENCE_MS - 1);
    const after = await hello();
    expect([after.token === before.token, after.since]).toEqual([false, 0]);
    expect((await hello(before.token)).token).toBe(after.token);
  });

  it('is not since later than now, when the clock was set back', async () => {
    const { token, now } = await hello();
    await redis.client.hset(ID, 'since', now + 3_600_000);
    const told = await hello(token);
    expect([told.token, told.since]).toEqual([token, told.now]);
  });

  it('tells how full the memory is', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
    await redis.client.config('SET', 'maxmemory', used * 2);
    expect((await hello()).full).toBeCloseTo(0.5, 1);
    await redis.client.config('SET', 'maxmemory', '1mb');
    expect((await hello()).full).toBeGreaterThanOrEqual(1);
    await redis.client.config('SET', 'maxmemory', 0);
  });

  describe('beside another version', () => {
    const byVersion2 = { id: 'run line token 0 ', n: '7', v: '2' };

    it.each([
      ['an earlier one', () => redis.client.hset(USED_BY, byVersion2)],
      ['a later one', () => redis.client.hset(USED_BY, 'v', PROTOCOL + 1)],
      ['the first one', () => redis.client.set(USED_BY, 'run line token 0')],
    ])('is refused in words while %s runs, and nothing is changed for it', async (_, use) => {
      const before = await hello();
      await redis.client.del(USED_BY);
      await use();
      const kept = await redis.client.dumpBuffer(USED_BY);
      for (let n = 0; n < 3; n++) await expect(hello(before.token)).rejects.toThrow(/^PROTOCOL The store is used by /);
      expect(await redis.client.dumpBuffer(USED_BY)).toEqual(kept);
      expect(await swap('', 'a new note', { token: before.token })).toBe('another');
      await leaveIdle(60);
      const after = await hello(before.token);
      expect([after.token === before.token, after.since]).toEqual([false, after.now]);
    });

    it('does not keep the other from being idle by asking', async () => {
      await redis.client.hset(USED_BY, byVersion2);
      await expect(hello()).rejects.toThrow('PROTOCOL');
      await leaveIdle(4);
      await expect(hello()).rejects.toThrow('PROTOCOL');
      expect(await redis.client.object('IDLETIME', USED_BY)).toBeGreaterThanOrEqual(4);
    });

    it('is what makes version 0.2 refuse: a later number in the field that it reads', async () => {
      await redis.client.flushall();
      await hello();
      expect(Number(await redis.client.hget('portico:{0}:id', 'v'))).toBeGreaterThan(2);
    });
  });
});

describe.skipIf(!hasRedis)(`SWAP${SKIPPED}`, () => {
  const seen = 'twelve-bytes';

  beforeEach(async () => {
    await redis.client.flushall();
    await relyOn(redis);
    expect(await swap('', `${seen} first`)).toBe('done');
  });

  it('replaces the note that was seen, and no other', async () => {
    expect(await swap('', 'other-bytes- second')).toBe('other');
    expect(await swap('other-bytes-', 'other-bytes- second')).toBe('other');
    expect(await redis.client.get('note')).toBe(`${seen} first`);
    expect(await swap(seen, 'other-bytes- second')).toBe('done');
    expect(await redis.client.get('note')).toBe('other-bytes- second');
    expect(await redis.client.pttl('note')).toBeGreaterThan(0);
  });

  it('changes a record with its note, or neither', async () => {
    expect(await swap('other-bytes-', 'n', { record: 'record' })).toBe('other');
    expect(await redis.client.get('record')).toBeNull();
    expect(await swap(seen, `${seen} second`, { record: 'record' })).toBe('done');
    expect(await redis.client.get('record')).toBe('record');
    expect(await redis.client.pttl('record')).toBeGreaterThan(0);
    expect(await swap(seen, `${seen} third`)).toBe('done');
    expect(await redis.client.get('record')).toBe('record');
    expect(await swap(seen, `${seen} fourth`, { record: '' })).toBe('done');
    expect(await redis.client.get('record')).toBeNull();
  });

  it('changes nothing in another store, or in another run of this one', async () => {
    expect(await swap(seen, 'n', { token: newToken() })).toBe('another');
    await redis.client.hset(ID, 'run', 'another');
    expect(await swap(seen, 'n')).toBe('another');
    await redis.client.del(ID);
    expect(await swap(seen, 'n')).toBe('another');
    expect(await redis.client.get('note')).toBe(`${seen} first`);
  });

  it('has room where the memory is full, and KEEP has none', async () => {
    await redis.client.config('SET', 'maxmemory', '1mb');
    try {
      expect(await swap(seen, 'other-bytes- second')).toBe('done');
      await expect(keep('v', 1)).rejects.toThrow(/OOM/);
    } finally {
      await redis.client.config('SET', 'maxmemory', 0);
    }
  });
});

describe.skipIf(!hasRedis)(`KEEP${SKIPPED}`, () => {
  beforeEach(() => redis.client.flushall());

  it('makes the note that is missing, also without a copy, and changes none', async () => {
    expect(await run(redis.client, 'keep', ['note'], [FIRST_REV, FIRST, 90_000])).toBe(1);
    expect([await redis.client.get('note'), await redis.client.exists('copy')]).toEqual([FIRST, 0]);
    expect(await keep('v', 1)).toBe(true);
    expect(await redis.client.pttl('note')).toBeGreaterThan(await redis.client.pttl('copy'));
    await redis.client.set('note', 'twelve bytes, and more', 'PX', 1_000_000);
    expect(await keep('v', 2, 'twelve bytes')).toBe(true);
    expect(await redis.client.get('note')).toBe('twelve bytes, and more');
  });

  it('makes the note outlive the copy, and no other note ends sooner', async () => {
    await hello();
    await redis.client.set('note', 'twelve bytes and more', 'PX', 5_000);
    expect(await keep('v', 1, 'twelve bytes')).toBe(true);
    expect(String(await redis.client.get('note'))).toBe('twelve bytes and more');
    expect(await redis.client.pttl('note')).toBeGreaterThan(60_000);
    await redis.client.pexpire('note', 200_000);
    expect(await keep('v', 2, 'twelve bytes')).toBe(true);
    expect(await swap('twelve bytes', 'another note')).toBe('done');
    expect(await redis.client.pttl('note')).toBeGreaterThan(100_000);
  });

  it('keeps nothing where the note is another one than that which was seen', async () => {
    expect(await keep('v', 1, 'twelve bytes')).toBe(false);
    expect(await redis.client.exists('note')).toBe(0);
    await redis.client.set('note', 'twelve bytes, and more');
    expect(await keep('v', 1)).toBe(false);
    expect(await redis.client.get('note')).toBe('twelve bytes, and more');
  });

  it('keeps no copy in the place of one of its version that was asked for later, by less than a minute', async () => {
    expect(await keep('v', 100_000)).toBe(true);
    expect([await keep('v', 99_999), await keep('v', 40_001)]).toEqual([false, false]);
    expect([await keep('v', 40_000), await keep('v', 40_000), await keep('v', 40_001)]).toEqual([true, true, true]);
    expect(await keep('w', 1)).toBe(true);
  });

  it('keeps one in the place of what is no copy', async () => {
    await redis.client.set('copy', 'short');
    expect(await keep('v', 1)).toBe(true);
  });
});
