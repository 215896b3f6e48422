import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SILENCE_MS, TOKEN } from '../../src/entry/node/redis/scripts.ts';
import { FIRST_REV } from '../../src/store/sealed.ts';
import {
  hasRedis,
  type OpenedStore,
  type OpenOptions,
  openRedisStore,
  PATIENCE,
  relyOn,
  SKIPPED,
  startRedis,
  type TestRedis,
} from '../support/redis.ts';
import { newAccount } from './contract.ts';
import { writeOf } from './writes.ts';

const WINDOW_MS = 65_000;
const noteOf = (text: string) => ({ name: 'note', value: Buffer.from(text), lifeMs: 60_000 });
const copyOf = (text: string) => ({ name: 'c:1', value: Buffer.from(text.padEnd(30)), lifeMs: 60_000 });

describe.skipIf(!hasRedis)(`an instance with a Redis${SKIPPED}`, () => {
  let redis: TestRedis;
  const closing: (() => unknown)[] = [];

  beforeEach(async () => {
    redis = await startRedis();
    await relyOn(redis);
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await redis.close();
  });

  const open = async (url = redis.url, options: OpenOptions = {}): Promise<OpenedStore> => {
    const one = await openRedisStore(url, { windowMs: WINDOW_MS, ...options });
    closing.push(() => one.close());
    return one;
  };
  const opened = async (options: OpenOptions = {}) => {
    const one = await open(redis.url, options);
    await one.until(true);
    return one;
  };
  const replicaOf = async (primary: TestRedis) => {
    const replica = await startRedis();
    closing.push(() => replica.close());
    await replica.client.replicaof('127.0.0.1', primary.port);
    await vi.waitFor(async () => expect(await primary.client.info('replication')).toMatch('state=online'), PATIENCE);
    return replica;
  };
  const killConnections = () => redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const used = async () => Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
  const callsOf = async (command: string) =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.client.info('commandstats'))?.[1] ?? 0);

  const settingsWrong = async () => {
    const { troubles } = await opened();
    await vi.waitFor(() => expect([...troubles]).toContain('NOT_PERSISTENT'), PATIENCE);
    return [...troubles].toSorted();
  };

  describe('has no store', () => {
    it.each(['now', 'wall'] as const)('%s: 2.5 s after the last HELLO was sent, and asks nobody', async (which) => {
      const time = { now: 1_000, wall: 1_000 };
      const shelfClock = { now: () => time.now, wall: () => time.wall, after: () => () => undefined };
      const { shelf } = await opened({ shelfClock });
      const before = await callsOf('mget');
      time[which] += SILENCE_MS - 1;
      expect(shelf.isThere).toBe(true);
      time[which] += 1;
      expect(shelf.isThere).toBe(false);
      await expect(shelf.read('account', ['note'])).rejects.toThrow('there is no store');
      await expect(shelf.count('account', { name: 'w', lengthMs: 60_000 }, 1)).rejects.toThrow('there is no store');
      expect(await callsOf('mget')).toBe(before);
    });

    it('after a HELLO that was refused: of a replica', async () => {
      const one = await open((await replicaOf(redis)).url);
      expect([one.shelf.isThere, one.changes, [...one.troubles]]).toEqual([false, [false], ['READONLY']]);
    });

    it('where a primary misses its replicas, until it has them', async () => {
      const one = await opened();
      await redis.client.config('SET', 'min-replicas-to-write', '1');
      await one.until(false);
      expect(one.troubles).toContain('NOREPLICAS');
      await replicaOf(redis);
      await one.until(true);
      expect(one.changes).toEqual([false, true]);
    });

    it('while it has no connection, and has it again after a HELLO on the next one', async () => {
      const one = await opened();
      for (let n = 0; n < 3; n++) {
        const before = await redis.connections();
        await killConnections();
        await vi.waitFor(async () => expect(await redis.connections()).toBeGreaterThan(before), PATIENCE);
        await one.until(true);
      }
      expect(one.changes).toEqual([false, true, false, true, false, true]);
      expect(one.troubles).not.toContain('ANOTHER_STORE');
    });

    it('while the node is down, also at the start', async () => {
      await redis.kill();
      const one = await open();
      expect([one.shelf.isThere, one.changes, [...one.troubles]]).toEqual([false, [false], ['ECONNREFUSED']]);
      await redis.start();
      await one.until(true);
      await redis.kill();
      await one.until(false);
    });

    it('while the node is silent: the connection is closed', async () => {
      const one = await opened();
      redis.signal('SIGSTOP');
      await expect(one.shelf.count('account', { name: 'w', lengthMs: 60_000 }, 1)).rejects.toThrow();
      await one.until(false);
      expect(one.troubles).toContain('ETIMEDOUT');
      redis.signal('SIGCONT');
      await one.until(true);
    });

    it('where its database is refused', async () => {
      const one = await open(`${redis.url}/99`);
      expect([one.shelf.isThere, [...one.troubles]]).toEqual([false, ['ERR']]);
      await open(`${redis.url}/2`);
      expect(await redis.client.info('keyspace')).toMatch(/db2:keys=/);
    });
  });

  describe('of another store', () => {
    it('reads nothing, and learns at once which it is', async () => {
      const { shelf, troubles } = await opened();
      const { token } = shelf;
      expect(shelf.reliableAt).toBe(WINDOW_MS);
      await redis.client.flushall();
      await expect(shelf.read('account', ['note'])).rejects.toThrow('another store');
      expect([shelf.token === token, shelf.token]).toEqual([false, await redis.client.get(TOKEN)]);
      expect(shelf.reliableAt).toBeGreaterThan(shelf.now());
      expect([...troubles]).toContain('ANOTHER_STORE');
      expect(await shelf.read('account', ['note'])).toEqual({ token: shelf.token, values: [null] });
    });

    it('changes nothing: neither after a flush nor after a restart with all that was there', async () => {
      const one = await opened();
      const next = { note: noteOf('twelve-bytes first'), isBeginning: true };
      await redis.client.flushall();
      await expect(one.shelf.swap('account', '', next)).rejects.toThrow('another store');
      expect(await redis.client.exists('p3:account:note')).toBe(0);
      expect(await one.shelf.swap('account', '', next)).toBe('done');
      const { token } = one.shelf;
      const snapshot = await redis.snapshot();
      await redis.kill();
      await one.until(false);
      await redis.start(snapshot);
      await one.until(true);
      expect([one.shelf.token === token, one.shelf.reliableAt > one.shelf.now()]).toEqual([false, true]);
      expect(await redis.client.exists('p3:account:note')).toBe(1);
    });
  });

  it('has the time of the store', async () => {
    const shelfClock = { now: () => 5, wall: () => 5, after: () => () => undefined };
    const { shelf } = await opened({ shelfClock });
    expect(Math.abs(shelf.now() - Date.now())).toBeLessThan(60_000);
  });

  it('gets scripts known again that were lost', async () => {
    const { shelf } = await opened();
    await redis.client.script('FLUSH');
    expect(await shelf.swap('account', '', { note: noteOf('twelve-bytes'), isBeginning: true })).toBe('done');
  });

  it('keeps no copy where half of the memory is used, begins no write from three quarters on, and ends them', async () => {
    const { shelf } = await opened();
    /** With so much of the memory in use, when the instance knows it. */
    const fillTo = async (part: number) => {
      await redis.client.config('SET', 'maxmemory', Math.round((await used()) / part));
      const hellos = async () => Number(await redis.client.hget('p3:id', 'heard'));
      const before = await hellos();
      await vi.waitFor(async () => expect(await hellos()).toBeGreaterThan(before), PATIENCE);
      await shelf.read('account', []); // came after the reply to that
    };
    const begin = (account: string) => shelf.swap(account, '', { note: noteOf('twelve-bytes'), isBeginning: true });
    await shelf.keep('kept', FIRST_REV, noteOf(FIRST_REV), copyOf('copy'));
    await fillTo(0.6);
    await shelf.keep('not kept', FIRST_REV, noteOf(FIRST_REV), copyOf('copy'));
    expect([await redis.client.exists('p3:kept:c:1'), await redis.client.exists('p3:not kept:c:1')]).toEqual([1, 0]);
    expect(await begin('begun')).toBe('done');
    await fillTo(0.9);
    expect(await begin('not begun')).toBe('full');
    expect(await shelf.swap('begun', 'twelve-bytes', { note: noteOf('end'), isBeginning: false })).toBe('done');
  });

  it('counts in a window together with others, under a key with an end', async () => {
    const [one, other] = [await opened(), await opened()];
    const window = { name: 'requests by account', lengthMs: 86_400_000 };
    const first = await one.shelf.count('account', window, 3);
    expect(first.used).toBe(3);
    expect(first.endsAt % window.lengthMs).toBe(0);
    expect(await other.shelf.count('account', window, 4)).toEqual({ used: 7, endsAt: first.endsAt });
    const [key = ''] = await redis.client.keys('p3:account:w:*');
    const left = await redis.client.pttl(key);
    expect(left).toBeGreaterThanOrEqual(first.endsAt - one.shelf.now());
    expect(left).toBeLessThanOrEqual(first.endsAt - one.shelf.now() + 60_000);
  });

  it('has nothing in the store that does not end, but for what tells which store it is', async () => {
    const { store } = await opened();
    const account = newAccount();
    const write = writeOf({ account, key: 'key', now: Date.now() });
    await store.beginWrite(write);
    await store.endWrite(write, { status: 200, text: '"the answer"', at: 5 });
    await store.snapshot({ account, window: { name: 'w', lengthMs: 60_000, limit: 9 }, waitUntil: () => undefined });
    const keys = await redis.client.keys('*');
    const endless = await Promise.all(keys.map(async (key) => [key, await redis.client.pttl(key)] as const));
    expect(
      endless
        .filter(([, left]) => left === -1)
        .map(([key]) => key)
        .toSorted(),
    ).toEqual(['p3:id', TOKEN, 'portico:{0}:id']);
    expect(keys.map((key) => key.split(':')[2])).toEqual(expect.arrayContaining(['note', 'r', 'w']));
    expect(Buffer.concat(await redis.dump()).toString('latin1')).not.toContain('the answer');
  });

  describe('that finds what it has not stored', () => {
    const account = newAccount();
    const keyed = () => writeOf({ account, key: 'key', now: Date.now() });
    const nameOf = async (part: string) => (await redis.client.keys(`p3:${account}:${part}*`))[0] ?? '';

    it('has no store for an account whose note was changed, moved, cut off, or sealed by another secret', async () => {
      const theirs = newAccount();
      const one = await opened();
      await one.store.beginWrite(keyed());
      await one.store.beginWrite(writeOf({ account: theirs, now: Date.now() }));
      const name = await nameOf('note');
      const good = (await redis.client.getBuffer(name)) ?? Buffer.alloc(0);
      const changed = Buffer.from(good);
      changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, changed.length - 1);
      const moved = (await redis.client.getBuffer(`p3:${theirs}:note`)) ?? '';
      for (const bad of [changed, moved, good.subarray(0, 20), good.subarray(0, 5), '']) {
        const other = await opened();
        await redis.client.set(name, bad);
        expect((await other.store.beginWrite(keyed())).refusal?.code, String(bad.length)).toBe('store_unavailable');
      }
      await redis.client.set(name, good);
      const stranger = await opened({ secrets: ['another secret of tests, long enough'] });
      expect((await stranger.store.beginWrite(keyed())).refusal?.code).toBe('store_unavailable');
      const rotated = await opened({
        secrets: ['another secret of tests, long enough', 'a secret of tests, long enough to be one'],
      });
      expect((await rotated.store.beginWrite(keyed())).record?.outcome).toBe('under_way');
    });

    it('takes a record that it cannot open for one of unknown outcome', async () => {
      const { store } = await opened();
      await store.beginWrite(keyed());
      await redis.client.set(await nameOf('r:'), 'what is no record');
      const asked = await store.outcomeOf({ account, window: undefined, key: 'key', waitUntil: () => undefined });
      expect(asked.record?.outcome).toBe('unknown');
    });
  });

  describe('names the trouble:', () => {
    it('NOAUTH, WRONGPASS, NOPERM', async () => {
      await redis.client.call('ACL', 'SETUSER', 'weak', 'on', '>p', '~*', '+@all', '-hset');
      await redis.client.config('SET', 'requirepass', 'secret');
      const to = (login: string) => open(redis.url.replace('//', `//${login}`));
      const named = await Promise.all([to(''), to(':wrong@'), to('weak:wrong@'), to('weak:p@'), to(':secret@')]);
      expect(named.map(({ troubles }) => [...troubles].filter((one) => one !== 'NOT_PERSISTENT'))).toEqual([
        ['NOAUTH'],
        ['WRONGPASS'],
        ['WRONGPASS'],
        ['NOPERM'],
        [],
      ]);
      expect(named.map(({ shelf }) => shelf.isThere)).toEqual([false, false, false, false, true]);
    });

    it('MAXCLIENTS, with a login and without', async () => {
      await redis.client.config('SET', 'maxclients', 1);
      for (const login of ['', ':password@', 'user:password@']) {
        const one = await open(redis.url.replace('//', `//${login}`));
        expect([one.shelf.isThere, [...one.troubles]]).toEqual([false, ['MAXCLIENTS']]);
        one.close();
      }
    });

    it('none, where a password is given that nobody asks for', async () => {
      const one = await open(redis.url.replace('//', '//:password@'));
      expect(one.shelf.isThere).toBe(true);
    });

    it('PROTOCOL, where an earlier version uses the store', async () => {
      await redis.client.hset('portico:{0}:id', 'v', '2');
      await redis.client.del('p3:id');
      const one = await open();
      expect([one.shelf.isThere, [...one.troubles]]).toEqual([false, ['PROTOCOL']]);
    });

    it('of settings', async () => {
      const set = (...settings: (string | number)[]) => redis.client.config('SET', ...settings);
      await set('min-replicas-max-lag', 10, 'maxmemory', '100mb');
      expect(await settingsWrong()).toEqual(['NOT_PERSISTENT']);
      await set('maxmemory-policy', 'allkeys-lru');
      await replicaOf(redis);
      expect(await settingsWrong()).toEqual(['EVICTS', 'FEW_MIN_REPLICAS', 'LAG', 'NOT_PERSISTENT']);
      await set('maxmemory-policy', 'noeviction', 'min-replicas-to-write', 1, 'min-replicas-max-lag', 2);
      expect(await settingsWrong()).toEqual(['NOT_PERSISTENT']);
    });
  });

  it('works with the rights that docs/shared-state.md names', async () => {
    const rights = /user portico on >PASSWORD ([^`]+)`/.exec(readFileSync('docs/shared-state.md', 'utf8'))?.[1] ?? '';
    await redis.client.call('ACL', 'SETUSER', 'one', 'on', '>p%40ss', ...rights.split(' '));
    await redis.client.flushall();
    const one = await open(redis.url.replace('//', '//one:p%2540ss@'));
    expect(one.shelf.isThere).toBe(true);
    await relyOn(redis);
    expect(await one.shelf.keep('account', FIRST_REV, noteOf(FIRST_REV), copyOf('copy'))).toBe(true);
    await redis.client.pexpire('p3:account:note', 1_000);
    expect(await one.shelf.keep('account', FIRST_REV, noteOf(FIRST_REV), copyOf('copy'))).toBe(true);
    await one.shelf.swap('account', FIRST_REV, { note: noteOf('note'), isBeginning: false });
    await one.shelf.count('account', { name: 'w', lengthMs: 60_000 }, 1);
    await vi.waitFor(
      () =>
        one.shelf.swap('account', 'note', {
          note: noteOf('end'),
          isBeginning: true,
          record: { name: 'r:1', lifeMs: 5 },
        }),
      PATIENCE,
    );
    expect([...one.troubles].filter((trouble) => trouble === 'NOPERM')).toEqual([]);
  });
});
