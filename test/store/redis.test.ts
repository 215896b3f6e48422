import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { SILENCE_MS, TOKEN } from '../../src/entry/node/redis/scripts.ts';
import { FIRST_REV } from '../../src/store/sealed.ts';
import { testClock } from '../support/clock.ts';
import { says } from '../support/contract.ts';
import { openGateway } from '../support/gateway.ts';
import { listenLocally } from '../support/ports.ts';
import { hasRedis, relyOn, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { selfSigned } from '../support/self-signed.ts';
import { ANSWER, newAccount, writeOf } from './contract.ts';
import { storeOver } from '../support/stores.ts';
import { openShelf, WINDOW_MS } from './redis.ts';

const noteOf = (text: string) => ({ name: 'note', value: Buffer.from(text), lifeMs: 60_000 });
const copyOf = (text: string) => ({ name: 'c:1', value: Buffer.from(text.padEnd(30)), lifeMs: 60_000 });
const FIRST = { note: noteOf('twelve-bytes first'), isBeginning: true };
const waitUntil = () => undefined;
const clock = testClock();
const SECRETS = ['a secret of tests, long enough to be one'];
const window = { name: 'requests', lengthMs: 86_400_000, limit: 9 };

const at = (host: string, port: number) => ({ host, port });
const sentinels = { kind: 'sentinel', password: 'p', master: 'primary', nodes: [at('a', 1), at('b', 26_379)] };

test.each([
  ['redis://store', { nodes: [at('store', 6379)] }],
  ['redis://store:1/', { nodes: [at('store', 1)] }],
  ['redis://[::1]:7/12', { db: 12, nodes: [at('::1', 7)] }],
  ['rediss://10.0.0.1', { tls: true, nodes: [at('10.0.0.1', 6379)] }],
  ['redis://us%3Aer:p%40%25%2Fs:s@store', { user: 'us:er', password: 'p@%/s:s', nodes: [at('store', 6379)] }],
  ['redis://:p@store', { password: 'p', nodes: [at('store', 6379)] }],
  ['redis://user@store', { user: 'user', password: '', nodes: [at('store', 6379)] }],
  ['redis-sentinel://:p@a:1,b/primary/2', { ...sentinels, db: 2 }],
  ['rediss-sentinel://user:p@a:1,b/primary', { ...sentinels, tls: true, user: 'user' }],
])(
  `${says('`redis://`, `rediss://`, `redis-sentinel://user:password@host:port,…/master/db`')}: %s`,
  (text, address) => {
    expect(storeAddressOf(text)).toEqual({ kind: 'one', tls: false, db: 0, ...address });
  },
);

/** A sentinel that names a node where nobody listens. */
const naming = (socket: Socket) =>
  void socket.on('data', () => socket.end('*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n-ERR\r\n'));
const saying = (text: string) => (socket: Socket) => void socket.end(`${text}\r\n`);

test.each([
  ['redis://AT', 'ECONNRESET', 'it closes connections.', (socket: Socket) => void socket.destroy()],
  ['redis://AT', 'EPROTO', 'it does not speak', saying('HTTP/1.1 400 Bad Request')],
  ['redis://AT', 'DENIED', 'it is in protected mode. Give it a user with a password', saying('-DENIED it is')],
  ['redis-sentinel://AT/main', 'ECONNREFUSED', 'the primary that a sentinel names does not listen.', naming],
  ['redis-sentinel://127.0.0.1:1/main', 'ECONNREFUSED', 'a sentinel does not listen.', naming],
  ['rediss-sentinel://127.0.0.1:1,AT/main', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'a sentinel shows a certificate', naming],
])('says the first cause in the log, and what to do: %s, %s', async (form, reason, words, onSocket) => {
  const server = form.startsWith('rediss') ? createTls(selfSigned, onSocket) : createServer(onSocket);
  const url = form.replace('AT', `127.0.0.1:${await listenLocally(server)}`);
  const [said, its] = [(line: { msg: string }) => line.msg.startsWith('trouble with the store'), testClock()];
  const { lines } = openGateway({ STORE_URL: url, SECRETS: 'for-development-only-and-known-to-all' }, { clock: its });
  while (!lines.some(said)) await its.pass(0);
  server.close();
  expect(lines.find(said)).toMatchObject({ reason, msg: expect.stringContaining(`trouble with the store: ${words}`) });
});

describe.skipIf(!hasRedis)(`${says('Redis 7 or Valkey 8, one node or Sentinel')}${SKIPPED}`, () => {
  let redis: TestRedis;
  let token: string;
  const closing: (() => unknown)[] = [];

  beforeEach(async () => {
    redis = await startRedis();
    token = await relyOn(redis);
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await redis.close();
  });

  const open = async (url = redis.url, options?: Parameters<typeof openShelf>[1]) => {
    const one = await openShelf(url, options);
    closing.push(one.close);
    return one;
  };
  const opened = async () => {
    const one = await open(redis.url, { token });
    await one.until(() => one.shelf.isThere);
    return one;
  };
  const replicaOf = async (primary: TestRedis) => {
    const replica = await startRedis();
    closing.push(() => replica.close());
    await replica.client.replicaof('127.0.0.1', primary.port);
    expect(await primary.client.wait(1, 0)).toBe(1);
    return replica;
  };
  const settingsWrong = async () => {
    const { troubles, until } = await opened();
    await until(() => troubles.has('NOT_PERSISTENT')); // all are said at once
    return [...troubles].toSorted();
  };
  const set = (...settings: (string | number)[]) => redis.client.config('SET', ...settings);

  describe('has no store', () => {
    test.each(['now', 'wall'] as const)(`${says('An instance that had no answer for 2.5 s')}: by %s`, async (which) => {
      const time = { now: 1_000, wall: 1_000 };
      const its = { ...clock, now: () => time.now, wall: () => time.wall };
      const { shelf } = await open(redis.url, { clock: its });
      time[which] += SILENCE_MS - 1;
      expect(shelf.isThere).toBe(true);
      time[which] += 1;
      expect(shelf.isThere).toBe(false);
      await expect(shelf.read('account', ['note'])).rejects.toThrow('there is no store');
      await expect(shelf.count('account', window, 1)).rejects.toThrow('there is no store');
    });

    test(says('asks once a second, and no request waits for it'), async () => {
      const { shelf, clock: its, hello } = await opened();
      for (let n = 0; n < 3; n++) {
        await hello();
        expect(its.timers()).toEqual([1_000]);
      }
      const silent = createServer((socket) => void closing.push(() => socket.destroy())).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      closing.push(() => silent.close());
      const { port } = silent.address() as AddressInfo;
      const gateway = openGateway({
        STORE_URL: `redis://127.0.0.1:${port}`,
        SECRETS: 'for-development-only-and-known-to-all',
      });
      expect((await gateway.ask('getSubscription')).cache).toBe('portico; fwd=miss');
      expect((await gateway.ask('purchasePlan')).code).toBe('store_unavailable');
      shelf.close();
    });

    test('at a replica', async () => {
      const one = await open((await replicaOf(redis)).url);
      expect([one.shelf.isThere, one.changes, [...one.troubles]]).toEqual([false, [false], ['READONLY']]);
    });

    test('where a primary misses its replicas, until it has them', async () => {
      const one = await opened();
      await set('min-replicas-to-write', '1');
      await one.hello();
      expect([one.shelf.isThere, [...one.troubles]]).toEqual([false, expect.arrayContaining(['NOREPLICAS'])]);
      await replicaOf(redis);
      await one.until(() => one.shelf.isThere);
      expect(one.changes).toEqual([false, true]);
    });

    test('while the node is down, also at the start', async () => {
      await redis.kill();
      const one = await open();
      expect([one.shelf.isThere, one.changes, [...one.troubles]]).toEqual([false, [false], ['ECONNREFUSED']]);
      await redis.start();
      await one.until(() => one.shelf.isThere);
      await redis.kill();
      await one.until(() => !one.shelf.isThere);
    });
  });

  describe('of another store', () => {
    test('says so when it begins, too: until its time is over purchases wait', async () => {
      await redis.client.flushall();
      const { shelf, troubles, until } = await open();
      await until(() => shelf.isThere);
      expect([...troubles]).toContain('ANOTHER_STORE');
    });

    test('reads nothing, and learns at once which it is', async () => {
      const { shelf, troubles } = await opened();
      expect([shelf.token, shelf.reliableAt]).toEqual([token, WINDOW_MS]);
      await redis.client.flushall();
      await expect(shelf.read('account', ['note'])).rejects.toThrow('another store');
      expect([shelf.token === token, shelf.token]).toEqual([false, await redis.client.get(TOKEN)]);
      expect([shelf.reliableAt > shelf.now(), [...troubles]]).toEqual([
        true,
        expect.arrayContaining(['ANOTHER_STORE']),
      ]);
      expect(await shelf.read('account', ['note'])).toEqual({ token: shelf.token, values: [null] });
    });

    test('changes nothing: neither after a flush nor after a restart with all that was there', async () => {
      const one = await opened();
      await redis.client.flushall();
      await expect(one.shelf.swap('account', '', FIRST)).rejects.toThrow('another store');
      expect(await redis.client.exists('p3:account:note')).toBe(0);
      expect(await one.shelf.swap('account', '', FIRST)).toBe('done');
      const { token: known } = one.shelf;
      const snapshot = await redis.snapshot();
      await redis.kill();
      await one.until(() => !one.shelf.isThere);
      await redis.start(snapshot);
      await one.until(() => one.shelf.isThere);
      expect([one.shelf.token === known, one.shelf.reliableAt > one.shelf.now()]).toEqual([false, true]);
      expect(await redis.client.exists('p3:account:note')).toBe(1);
    });
  });

  test('gets scripts known again that were lost', async () => {
    const { shelf } = await opened();
    await redis.client.script('FLUSH');
    expect(await shelf.swap('account', '', FIRST)).toBe('done');
  });

  test('keeps no copy where half of the memory is used, begins no write from three quarters on, and ends them', async () => {
    const { shelf, hello } = await opened();
    const fillTo = async (part: number) => {
      const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
      await set('maxmemory', Math.round(used / part));
      await hello();
    };
    const keep = (account: string) => shelf.keep(account, FIRST_REV, noteOf(FIRST_REV), copyOf('copy'));
    await keep('kept');
    await fillTo(0.6);
    await keep('not kept');
    expect([await redis.client.exists('p3:kept:c:1'), await redis.client.exists('p3:not kept:c:1')]).toEqual([1, 0]);
    expect(await shelf.swap('begun', '', FIRST)).toBe('done');
    await fillTo(0.9);
    expect(await shelf.swap('not begun', '', FIRST)).toBe('full');
    expect(await shelf.swap('begun', 'twelve-bytes', { note: noteOf('end'), isBeginning: false })).toBe('done');
  });

  test('has nothing in the store that does not end or can be read, but for what tells which store it is', async () => {
    const { shelf } = await opened();
    const store = storeOver(shelf, clock, SECRETS);
    const write = writeOf({ account: newAccount(), key: 'key', now: clock.now() });
    await store.beginWrite(write);
    await store.endWrite(write, { ...ANSWER, text: '"the answer"' });
    await store.snapshot({ account: write.account, window, waitUntil });
    const keys = await redis.client.keys('*');
    const endless = await Promise.all(keys.map(async (key) => ((await redis.client.pttl(key)) === -1 ? [key] : [])));
    expect(endless.flat().toSorted()).toEqual(['p3:id', TOKEN, 'portico:{0}:id']);
    expect(keys.map((key) => key.split(':')[2])).toEqual(expect.arrayContaining(['note', 'r', 'w']));
    expect(Buffer.concat(await redis.dump()).toString('latin1')).not.toContain('the answer');
  });

  test('has no store for an account whose note was changed, moved, cut off, or sealed by another secret', async () => {
    const { shelf } = await opened();
    const [account, theirs] = [newAccount(), newAccount()];
    const begin = (secrets = SECRETS, whose = account) =>
      storeOver(shelf, clock, secrets).beginWrite(writeOf({ account: whose, key: 'key', now: clock.now() }));
    for (const whose of [account, theirs]) await begin(undefined, whose);
    const noteOfAccount = async (whose: string) =>
      (await redis.client.getBuffer(`p3:${whose}:note`)) ?? Buffer.alloc(0);
    const good = await noteOfAccount(account);
    const changed = Buffer.from(good);
    changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, changed.length - 1);
    for (const bad of [changed, await noteOfAccount(theirs), good.subarray(0, 20), good.subarray(0, 5), '']) {
      await redis.client.set(`p3:${account}:note`, bad);
      expect((await begin()).refusal?.code, String(bad.length)).toBe('store_unavailable');
    }
    await redis.client.set(`p3:${account}:note`, good);
    const another = 'another secret of tests, long enough';
    expect((await begin([another])).refusal?.code).toBe('store_unavailable');
    expect((await begin([another, ...SECRETS])).record?.outcome).toBe('under_way');
  });

  describe('names the trouble:', () => {
    test('NOAUTH, WRONGPASS, NOPERM, and none where a password is given that nobody asks for', async () => {
      const troublesAt = async (login: string) => {
        const { troubles, shelf } = await open(redis.url.replace('//', `//${login}`));
        return [...troubles, shelf.isThere].filter((one) => one !== 'NOT_PERSISTENT' && one !== 'ANOTHER_STORE');
      };
      expect(await troublesAt(':password@')).toEqual([true]);
      await redis.client.call('ACL', 'SETUSER', 'weak', 'on', '>p', '~*', '+@all', '-hset');
      await set('requirepass', 'secret');
      expect(await troublesAt('')).toEqual(['NOAUTH', false]);
      for (const login of [':wrong@', 'weak:wrong@']) expect(await troublesAt(login)).toEqual(['WRONGPASS', false]);
      expect(await troublesAt('weak:p@')).toEqual(['NOPERM', false]);
      await redis.client.call('ACL', 'SETUSER', 'weak', '+hset', '-info');
      await redis.client.flushall();
      const { troubles, until } = await open(redis.url.replace('//', '//weak:p@'));
      let saidMore = 9; // what a HELLO that was refused has left does not look like another version to the next ones
      await until(() => saidMore-- === 0);
      expect([...troubles]).toEqual(['NOPERM']);
      expect(await troublesAt(':secret@')).toEqual([true]);
    });

    test.each(['URL', 'redis-sentinel://:p@127.0.0.1:PORT/main'])('MAXCLIENTS: %s', async (form) => {
      await set('maxclients', 1); // which the test itself has
      const { troubles } = await open(form.replace('URL', redis.url).replace('PORT', String(redis.port)));
      expect([...troubles]).toEqual(['MAXCLIENTS']);
    });

    test('PROTOCOL, where an earlier version uses the store', async () => {
      await redis.client.hset('portico:{0}:id', 'v', '2');
      await redis.client.del('p3:id');
      const one = await open();
      expect([one.shelf.isThere, [...one.troubles]]).toEqual([false, ['PROTOCOL']]);
    });

    test(says('It has to persist (append-only) and evict nothing: a start without either warns.'), async () => {
      await set('min-replicas-max-lag', 10, 'maxmemory', '100mb');
      expect(await settingsWrong()).toEqual(['NOT_PERSISTENT']);
      await set('maxmemory-policy', 'allkeys-lru');
      await replicaOf(redis);
      expect(await settingsWrong()).toEqual(['EVICTS', 'FEW_MIN_REPLICAS', 'LAG', 'NOT_PERSISTENT']);
      await set('maxmemory-policy', 'noeviction', 'min-replicas-to-write', 1, 'min-replicas-max-lag', 2);
      expect(await settingsWrong()).toEqual(['NOT_PERSISTENT']);
    });
  });

  test('works with the rights that deploy/store/users.conf gives', async () => {
    const rights = /^user portico on >PASSWORD (.+)/m.exec(readFileSync('deploy/store/users.conf', 'utf8'))?.[1] ?? '';
    await redis.client.call('ACL', 'SETUSER', 'one', 'on', '>p%40ss', ...rights.split(' '));
    await redis.client.flushall();
    const { shelf, troubles } = await open(redis.url.replace('//', '//one:p%2540ss@'));
    expect(shelf.isThere).toBe(true);
    for (const expiresIn of [60_000, 1_000]) {
      expect(await shelf.keep('account', FIRST_REV, noteOf(FIRST_REV), copyOf('copy'))).toBe(true);
      await redis.client.pexpire('p3:account:note', expiresIn);
    }
    await shelf.swap('account', FIRST_REV, { note: noteOf('note'), isBeginning: false });
    await shelf.count('account', window, 1);
    await shelf.swap('account', 'note', { ...FIRST, record: { name: 'r:1', lifeMs: 5 } });
    expect(troubles).not.toContain('NOPERM');
  });
});
