import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ID, PROTOCOL, run, SILENCE_MS, TOKEN, USED_BY } from '../../src/entry/node/redis/scripts.ts';
import { FIRST_REV } from '../../src/store/sealed.ts';
import { hasRedis, relyOn, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';

const newToken = () => randomBytes(9).toString('base64url');

describe.skipIf(!hasRedis)(`in Redis${SKIPPED}`, () => {
  let redis: TestRedis;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.close());

  beforeEach(async () => {
    await redis.client.flushall();
    await relyOn(redis);
  });

  const hello = async (own = '') => {
    const reply = await run(redis.client, 'hello', [ID, TOKEN, USED_BY], [own, newToken()]);
    const [token, since, now, full] = reply as [Buffer, number, number, Buffer];
    return { token: String(token), since, now, full: Number(full) };
  };
  const swap = async (seen: string, note: string, token?: string) => {
    const known = token ?? (await redis.client.get(TOKEN)) ?? '';
    return String(await run(redis.client, 'swap', [ID, 'note'], [known, seen, note, 60_000]));
  };
  const keep = (copy: Buffer | string) =>
    run(redis.client, 'keep', ['note', 'copy'], [FIRST_REV, `${FIRST_REV} and more`, 90_000, copy, 60_000]);
  /** As if nobody had read the key of the protocol for so long. */
  const leaveIdle = async (seconds: number) => {
    const dump = await redis.client.dumpBuffer(USED_BY);
    await redis.client.restore(USED_BY, 0, dump, 'REPLACE', 'IDLETIME', seconds);
  };

  describe('HELLO', () => {
    test('tells everybody the same store, and since when it is one', async () => {
      const first = await hello();
      expect(await hello(first.token)).toMatchObject({ token: first.token, since: 0, full: 0 });
    });

    test.each([
      ['an empty one', () => redis.client.flushall()],
      ['one whose run is another', () => redis.client.hset(ID, 'run', 'another')],
      ['one whose token is missing', () => redis.client.del(TOKEN)],
      ['one whose token is not that of its id', () => redis.client.set(TOKEN, newToken())],
    ])('makes another store of %s, from now on', async (_, change) => {
      const before = await hello();
      await change();
      const after = await hello(before.token);
      expect([after.token === before.token, after.since]).toEqual([false, after.now]);
      expect(await hello(after.token)).toMatchObject({ token: after.token, since: after.since });
    });

    test('makes another store where the caller has seen one, unless it is among the last hundred', async () => {
      const seen = [(await hello()).token];
      for (let n = 0; n < 100; n++) seen.push((await hello(newToken())).token);
      expect(new Set(seen).size).toBe(101);
      const { token, since } = await hello(seen.at(-1));
      for (const own of seen) expect(await hello(own)).toMatchObject({ token, since });
      const after = await hello(newToken());
      expect([after.token === token, after.since]).toEqual([false, after.now]);
      expect((await hello(seen[0])).token).not.toBe(after.token);
    });

    test('makes another token where a caller has none and nobody has asked lately, for the same store', async () => {
      const before = await hello();
      await redis.client.hset(ID, 'heard', before.now + 3_600_000);
      expect((await hello()).token).toBe(before.token);
      await redis.client.hset(ID, 'heard', before.now - SILENCE_MS - 1);
      const after = await hello();
      expect([after.token === before.token, after.since]).toEqual([false, 0]);
      expect((await hello(before.token)).token).toBe(after.token);
    });

    const byVersion2 = { id: 'run line token 0 ', n: '7', v: '2' };

    test.each([
      ['an earlier version', () => redis.client.hset(USED_BY, byVersion2)],
      ['a later one', () => redis.client.hset(USED_BY, 'v', PROTOCOL + 1)],
      ['the first one', () => redis.client.set(USED_BY, 'run line token 0')],
    ])('is refused in words while %s runs, and nothing is changed for it', async (_, use) => {
      const before = await hello();
      await redis.client.del(USED_BY);
      await use();
      const kept = await redis.client.dumpBuffer(USED_BY);
      for (let n = 0; n < 3; n++) await expect(hello(before.token)).rejects.toThrow(/^PROTOCOL The store is used by /);
      expect(await redis.client.dumpBuffer(USED_BY)).toEqual(kept);
      expect(await swap('', 'a new note', before.token)).toBe('another');
      await leaveIdle(60);
      const after = await hello(before.token);
      expect([after.token === before.token, after.since]).toEqual([false, after.now]);
    });

    test('does not keep another version from being idle by asking', async () => {
      await redis.client.hset(USED_BY, byVersion2);
      await expect(hello()).rejects.toThrow('PROTOCOL');
      await leaveIdle(4);
      await expect(hello()).rejects.toThrow('PROTOCOL');
      expect(await redis.client.object('IDLETIME', USED_BY)).toBeGreaterThanOrEqual(4);
    });
  });

  const seen = 'twelve-bytes';

  test('SWAP has room where the memory is full, and KEEP has none', async () => {
    await redis.client.config('SET', 'maxmemory', '1mb');
    try {
      expect(await swap('', `${seen} first`)).toBe('done');
      await expect(keep(randomBytes(33))).rejects.toThrow(/OOM/);
    } finally {
      await redis.client.config('SET', 'maxmemory', 0);
    }
  });

  test('KEEP takes the place of what is no copy', async () => {
    await redis.client.set('copy', 'short');
    const copy = randomBytes(33);
    expect([await keep(copy), await redis.client.getBuffer('copy')]).toEqual([1, copy]);
  });
});
