import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hasRedis, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { listenLocally } from '../support/ports.ts';
import { startScriptedSentinel } from '../support/scripted-sentinel.ts';
import { asker, valueOf } from './engine-asker.ts';
import { Instances, openInstance, ready, WINDOW_MS } from './engine-world.ts';

/** As docs/shared-state.md gives them. */
const RIGHTS = /resetchannels -@all ([^`]+)`/.exec(readFileSync('docs/shared-state.md', 'utf8'))?.[1] ?? '';

const msOf = async (run: () => Promise<unknown>) => {
  const begunAt = performance.now();
  await expect(run()).rejects.toThrow();
  return performance.now() - begunAt;
};

describe.skipIf(!hasRedis)(`a Redis in trouble${SKIPPED}`, () => {
  let redis: TestRedis;
  let instances: Instances;
  const closing: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    redis = await startRedis();
    instances = new Instances();
  });
  afterEach(async () => {
    redis.signal('SIGCONT');
    instances.close();
    for (const close of closing.splice(0)) await close();
    await redis.close();
  });

  const open = async (url = redis.url) => {
    const one = await instances.open(url);
    await ready(one);
    await redis.pass(WINDOW_MS);
    return one;
  };
  const troublesOf = async () => {
    const { troubles } = await open();
    await vi.waitFor(() => expect([...troubles]).toContain('NOT_PERSISTENT'));
    return [...troubles].toSorted();
  };
  /** It is looked at again when a moment has passed. */
  const limitMemory = async (bytes: string) => {
    await redis.client.config('SET', 'maxmemory', bytes);
    await redis.pass(100);
  };
  const replicaOf = async (primary: TestRedis) => {
    const replica = await startRedis();
    closing.push(() => replica.close());
    await replica.client.replicaof('127.0.0.1', primary.port);
    await vi.waitFor(async () => expect(await primary.client.info('replication')).toMatch('state=online'), 5_000);
    return replica;
  };
  it('has no copy for a second after its connection was lost with a question under way: others may have found another store', async () => {
    const one = await openInstance(redis.url, WINDOW_MS, 1_000);
    closing.push(async () => one.close());
    await ready(one);
    await redis.pass(WINDOW_MS);
    const its = asker(one.engine);
    const kept = await its.keep('kept');
    redis.signal('SIGSTOP');
    await expect(its.snapshot()).rejects.toThrow();
    redis.signal('SIGCONT');
    const back = () => its.snapshot().catch(() => ({ reply: kept }));
    const lostAt = performance.now();
    await vi.waitFor(async () => expect((await back()).reply).toBeUndefined(), { interval: 5 });
    await vi.waitFor(async () => expect((await back()).reply?.version).toBe(kept.version), { timeout: 5_000 });
    expect(performance.now() - lostAt).toBeGreaterThan(900);
  });

  it('that closes a connection without a question under way is asked on another one, and nothing is lost', async () => {
    const one = await openInstance(redis.url, WINDOW_MS, 1_000);
    closing.push(async () => one.close());
    await ready(one);
    await redis.pass(WINDOW_MS);
    const its = asker(one.engine);
    const kept = await its.keep('kept');
    await vi.waitFor(() => expect([...one.troubles]).toEqual(['NOT_PERSISTENT']));
    for (let n = 0; n < 5; n++) {
      const before = await redis.connections();
      await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await vi.waitFor(async () => expect(await redis.connections()).toBeGreaterThan(before));
      expect(await its.look()).toMatchObject({ version: kept.version, copy: { askedAt: kept.askedAt } });
    }
    expect([one.changes, [...one.troubles]]).toEqual([[], ['NOT_PERSISTENT']]);
  });

  it('is asked every few seconds, so that nothing closes the connection', async () => {
    const one = await open();
    const { client } = redis;
    const pings = async () => /cmdstat_ping:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? '0';
    const before = Number(await pings());
    await vi.waitFor(async () => expect(Number(await pings())).toBeGreaterThan(before), { timeout: 30_000 });
    expect(one.changes).toEqual([]);
  });

  it('that is full takes no copies and no writes, and still ends writes and sessions', async () => {
    const one = await open();
    const its = asker(one.engine);
    const known = await its.keep('kept');
    await its.begin({ nonce: 'n', tags: ['u'] });
    await limitMemory('1mb');
    expect((await its.begin({ tags: ['v'], record: { key: 'r', value: valueOf('r'), lifeMs: 60_000 } })).is).toBe(
      'full',
    );
    expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
    const { now: askedAt, reply } = await its.snapshot({ key: 'new' });
    expect(await its.save({ key: 'new', version: reply?.version ?? '', askedAt })).toBe('full');
    await one.engine.change(its.account, { revoked: { id: 'over', lifeMs: 60_000 } });
    expect(await one.engine.session(its.account, 'over')).toMatchObject({ isRevoked: true });
    await its.end('n', 'unknown');
    expect((await its.snapshot({ tags: ['u'] })).reply).toBeUndefined();
    await its.end('n', 'done', { record: { key: 'r', value: valueOf('done'), lifeMs: 60_000 } });
    await limitMemory('0');
    const after = await its.begin({ record: { key: 'r', value: valueOf('r'), lifeMs: 60_000 } });
    expect(after).toMatchObject({ is: 'record', value: valueOf('done') });
  });

  it('that is more than three quarters full takes copies only to replace others, and every write', async () => {
    const its = asker((await open()).engine);
    const known = await its.keep('kept');
    const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
    await limitMemory(String(Math.round(used / 0.85)));
    expect(await its.save({ ...known, askedAt: known.askedAt + 1 })).toBe('kept');
    expect(await its.save({ ...known, key: 'new' })).toBe('full');
    expect((await its.begin()).is).toBe('begun');
    await limitMemory(String(used * 2));
    const other = asker((await open()).engine);
    const { now: askedAt, reply } = await other.snapshot();
    expect(await other.save({ version: reply?.version ?? '', askedAt })).toBe('kept');
  });

  it('that is nearly full has no room for unknown accounts, and some for writes', async () => {
    const { engine } = await open();
    const [its, unknown] = [asker(engine, 'known'), asker(engine, 'unknown')];
    await its.look();
    await redis.client.set('filler', 'x'.repeat(30_000_000));
    const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
    await limitMemory(String(Math.round(used / 0.99)));
    const window = { name: 'w', lengthMs: 60_000, limit: 9 };
    const asked = { window, keys: [{ key: 'k', tags: [] }] };
    const { use, keys } = await engine.snapshot('unknown', asked);
    expect([use, keys]).toEqual([undefined, []]);
    expect(await redis.client.keys('*unknown*')).toEqual([]);
    expect((await engine.snapshot('known', asked)).use?.used).toBe(1);
    expect((await unknown.begin()).is).toBe('begun');
  });

  it('that is a replica is refused, for reads and writes', async () => {
    const one = await instances.open((await replicaOf(redis)).url);
    const its = asker(one.engine);
    await expect(its.snapshot()).rejects.toThrow();
    await expect(its.begin()).rejects.toThrow();
    await vi.waitFor(() => expect([...one.troubles]).toContain('READONLY'));
    expect(one.isThere()).toBe(false);
  });

  it('that is a primary without its replicas is refused, until it has them, and says meanwhile which sessions are over', async () => {
    const one = await open();
    const its = asker(one.engine);
    await one.engine.change(its.account, { revoked: { id: 'over', epoch: 2, lifeMs: 60_000 } });
    await redis.client.config('SET', 'min-replicas-to-write', '1');
    await expect(its.snapshot()).rejects.toThrow(/NOREPLICAS/);
    await expect(its.begin()).rejects.toThrow(/NOREPLICAS/);
    expect(await one.engine.session(its.account, 'over')).toMatchObject({ isRevoked: true, epoch: 2 });
    expect(await one.engine.session(its.account, 'other')).toMatchObject({ isRevoked: false, epoch: 2 });
    expect(await one.engine.session('unknown', 'other')).toEqual({ isRevoked: false, epoch: 0 });
    expect([one.isThere(), one.troubles.has('NOREPLICAS')]).toEqual([false, true]);
    await replicaOf(redis);
    await vi.waitFor(() => expect(one.isThere()).toBe(true), 5_000);
    expect(await its.look()).toBeDefined();
    expect(one.changes).toEqual([false, true]);
  });

  it('that is down fails what is asked at once, and is found again', async () => {
    const one = await open();
    const its = asker(one.engine);
    await redis.kill();
    await vi.waitFor(() => expect(one.isThere()).toBe(false));
    expect(await msOf(() => its.snapshot())).toBeLessThan(1_000);
    expect(await msOf(() => its.begin())).toBeLessThan(1_000);
    await redis.start();
    await vi.waitFor(() => expect(one.isThere()).toBe(true), 5_000);
    expect(one.changes).toEqual([false, true]);
    expect([...one.troubles]).not.toContain('UNKNOWN');
  });

  it('that is silent is disconnected after 2 s, and nothing is sent twice', async () => {
    const one = await open();
    redis.signal('SIGSTOP');
    const ms = await msOf(() => one.engine.change('account', { cooldownMs: 60_000 }));
    expect(ms).toBeGreaterThan(1_500);
    expect(ms).toBeLessThan(3_000);
    expect(one.commands).toContain('change failed true');
    redis.signal('SIGCONT');
    await ready(one);
    // The store had read it from its socket, and did it when it went on.
    expect((await one.engine.snapshot('account', { keys: [] })).cooldownMs).toBeGreaterThan(0);
  });

  it('that has lost its scripts gets them again', async () => {
    const its = asker((await open()).engine);
    await redis.client.script('FLUSH');
    expect((await its.begin()).is).toBe('begun');
  });

  it('that is not there at the start is waited for a second at most, and found later', async () => {
    await redis.kill();
    const one = await instances.open(redis.url);
    expect([one.isThere(), one.changes]).toEqual([false, [false]]);
    expect([...one.troubles]).toEqual(['ECONNREFUSED']);
    await redis.start();
    await vi.waitFor(() => expect(one.isThere()).toBe(true), 5_000);
  });

  it.each([
    ['redis', '', 'ECONNREFUSED'],
    ['redis-sentinel', '/primary', 'NO_SENTINEL'],
    ['redis-cluster', '', 'NO_NODE'],
  ])('that is at no %s address is not there', async (kind, path, word) => {
    await redis.kill();
    const begunAt = performance.now();
    const one = await instances.open(`${kind}://127.0.0.1:${redis.port}${path}`);
    expect(performance.now() - begunAt).toBeLessThan(2_000);
    expect([one.isThere(), one.changes]).toEqual([false, [false]]);
    expect([...one.troubles]).toContain(word);
    expect([...one.troubles]).not.toContain('UNKNOWN');
    expect(await msOf(() => one.engine.snapshot('any', { keys: [] }))).toBeLessThan(1_000);
  });

  it('is found again when a sentinel tells of the new primary while it is asked for it', async () => {
    const sentinel = await startScriptedSentinel(redis.port);
    closing.push(() => sentinel.close());
    const one = await open(sentinel.url);
    for (let n = 0; n < 3; n++) {
      await vi.waitFor(() => expect(sentinel.listening()).toBe(1), 5_000);
      const before = sentinel.asked();
      sentinel.tellWhileAsked();
      await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await vi.waitFor(() => expect(sentinel.asked()).toBeGreaterThan(before), 5_000);
      await vi.waitFor(() => expect(one.isThere()).toBe(false), { timeout: 5_000, interval: 5 });
      await ready(one);
    }
    expect([...one.troubles]).not.toContain('UNKNOWN');
    const before = sentinel.asked();
    one.close();
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await sleep(500);
    expect([sentinel.asked(), sentinel.listening()]).toEqual([before, 0]);
  });

  it('reports wrong settings', async () => {
    expect(await troublesOf()).toEqual(['NOT_PERSISTENT']);
    await redis.client.config('SET', 'maxmemory', '100mb');
    expect(await troublesOf()).toEqual(['NOT_PERSISTENT']);
    await redis.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await redis.client.config('SET', 'replica-read-only', 'no');
    await replicaOf(redis);
    expect(await troublesOf()).toEqual(['EVICTS', 'FEW_MIN_REPLICAS', 'NOT_PERSISTENT', 'REPLICA_WRITABLE']);
    await redis.client.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.client.config('SET', 'min-replicas-to-write', '1');
    await redis.client.config('SET', 'replica-read-only', 'yes');
    expect(await troublesOf()).toEqual(['NOT_PERSISTENT']);
  });

  it('is not used where it refuses the database of the address', async () => {
    const { engine, troubles } = await instances.open(`${redis.url}/99`);
    await vi.waitFor(() => expect([...troubles]).toContain('ERR'));
    await expect(engine.snapshot('account', { keys: [] })).rejects.toThrow();
    expect(await redis.client.dbsize()).toBe(0);
    const two = await instances.open(`${redis.url}/2`);
    await vi.waitFor(() => two.engine.snapshot('account', { keys: [{ key: 'k', tags: [] }] }));
    expect(await redis.client.info('keyspace')).toMatch(/db2:keys=/);
    expect(await redis.client.dbsize()).toBe(0);
  });

  it('reports no settings that its user may not read, and works with the documented ACL', async () => {
    await replicaOf(redis);
    const rights = ['~portico:*', '-@all', ...RIGHTS.split(' ')];
    await redis.client.call('ACL', 'SETUSER', 'one', 'on', '>p%40ss', ...rights);
    const one = await open(redis.url.replace('//', '//one:p%2540ss@'));
    expect((await asker(one.engine).begin()).is).toBe('begun');
    expect(await one.engine.session('account', 'one')).toEqual({ isRevoked: false, epoch: 0 });
    await vi.waitFor(() => expect([...one.troubles]).toEqual(['NOT_PERSISTENT']));
  });

  it('behind a proxy that closes each connection on which somebody subscribes is asked, and not connected to without end', async () => {
    let subscriptions = 0;
    const proxy = createServer((from) => {
      const to = connect(redis.port, '127.0.0.1');
      const close = () => {
        for (const socket of [from, to]) socket.destroy();
      };
      for (const socket of [from, to]) socket.on('error', close).on('close', close);
      from.on('data', (chunk) => {
        const isSubscription = /subscribe/i.test(chunk.toString('latin1'));
        subscriptions += Number(isSubscription);
        if (isSubscription) close();
        else to.write(chunk);
      });
      to.on('data', (chunk) => from.write(chunk));
    });
    const port = await listenLocally(proxy);
    closing.push(async () => void proxy.close());
    const one = await open(`redis://127.0.0.1:${port}`);
    await vi.waitFor(() => expect([...one.troubles]).toContain('NO_CHANNEL'), 10_000);
    expect((await asker(one.engine).begin()).is).toBe('begun');
    const before = subscriptions;
    await sleep(1_000);
    expect(subscriptions - before).toBeLessThan(4);
  });

  it('has nothing in it that does not expire, but for its id', async () => {
    const { engine } = await open();
    const its = asker(engine, 'account');
    await its.keep('kept');
    await its.begin({ nonce: 'n', record: { key: 'r', value: valueOf('r'), lifeMs: 60_000 } });
    await its.end('m', 'unknown');
    await engine.change('account', { cooldownMs: 5_000 });
    await engine.change('other', { cooldownMs: 5_000 });
    await engine.snapshot('third', { window: { name: 'w', lengthMs: 60_000, limit: 1 }, keys: [] });
    await asker(engine, 'fourth').end('n', 'not_sent');
    const lives = await Promise.all(
      (await redis.client.keys('*')).map(async (key) => [key, (await redis.client.pttl(key)) > 0]),
    );
    expect(lives.filter(([, expires]) => !expires)).toEqual([['portico:{0}:id', false]]);
    expect(lives.map(([key]) => key)).toEqual(
      expect.arrayContaining(['portico:{0}:g:fourth:n', 'portico:{0}:w:third']),
    );
  });

  it('keeps a made-up account for two minutes', async () => {
    const its = asker((await open()).engine, 'account');
    await its.look({ lease: 'one' });
    const left = await redis.client.pttl('portico:{0}:a:account');
    expect(left).toBeGreaterThan(110_000);
    expect(left).toBeLessThanOrEqual(120_000);
  });
});
