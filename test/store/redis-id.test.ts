import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SCRIPTS } from '../../src/entry/node/redis/scripts.ts';
import { listenLocally } from '../support/ports.ts';
import { hasRedis, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { asker, valueOf } from './engine-asker.ts';
import { Instances, type OpenedEngine, ready, WINDOW_MS } from './engine-world.ts';

/** The store's id, without earlier tokens. */
const tokenOf = async ({ client }: TestRedis) => (await client.hget('portico:{0}:id', 'id'))?.split(' ')[2];

/** While the store is not relied on: no copy, nothing kept, no key taken, nothing bought; all else goes on. */
const expectWindow = async ({ engine }: OpenedEngine, account: string, known: { version: string; askedAt: number }) => {
  const its = asker(engine, account);
  const window = { name: 'minute', lengthMs: 60_000, limit: 1_000 };
  const { keys, use } = await engine.snapshot(account, { window, keys: [{ key: 'k', tags: ['t'], lease: 'l' }] });
  expect([keys, use?.used]).toEqual([[undefined], expect.any(Number)]);
  expect(await its.save(known)).toBe('void');
  expect((await its.begin({ purchase: 'p' })).is).toBe('another_store');
  const record = { key: 'new', value: valueOf('new'), lifeMs: 60_000 };
  for (const isQuestion of [undefined, true] as const)
    expect((await its.begin({ record, isQuestion })).is).toBe('another_store');
  expect((await its.begin({ nonce: 'plain', tags: ['other'] })).is).toBe('begun');
  await its.end('plain', 'not_sent');
};

/** A window shorter than the uptime of a new Redis. */
const SHORT_MS = 400;

/** An address that leads to one store or another. */
async function startSwitch(first: TestRedis) {
  let port = first.port;
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => (open.delete(socket), near.destroy(), far.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  const own = await listenLocally(server);
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${own}`,
    to(redis: TestRedis) {
      port = redis.port;
      cut();
    },
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}

describe.skipIf(!hasRedis)(`another store${SKIPPED}`, () => {
  let redis: TestRedis;
  let instances: Instances;
  const closing: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    redis = await startRedis();
    instances = new Instances();
  });
  afterEach(async () => {
    instances.close();
    for (const close of closing.splice(0)) await close();
    await redis.close();
  });

  const another = async (settings: Readonly<Record<string, string>> = {}) => {
    const other = await startRedis(settings);
    closing.push(() => other.close());
    return other;
  };
  /** Opens an instance after the window of the store's start. */
  const open = async (url = redis.url, windowMs?: number) => {
    const one = await instances.open(url, windowMs);
    await ready(one);
    await redis.pass(WINDOW_MS);
    return one;
  };
  it('is noticed too where the clock was set back to before its start: it says that it is up for less than nothing', async () => {
    const began = SCRIPTS.hello.replace(
      /redis\.call\('INFO', 'server'\)/,
      "string.gsub($&, '(uptime_in_seconds:)', '%1-')",
    );
    expect(began).not.toBe(SCRIPTS.hello);
    expect(await redis.client.eval(began, 1, 'portico:{0}:id', 'seed', '', 0, SHORT_MS, '')).toEqual([
      expect.stringMatching(/seed$/),
      0,
      0,
    ]);
  });

  it('has no window at a first start where the store has been up for longer', async () => {
    await vi.waitFor(async () => expect(await redis.client.info('server')).toMatch(/uptime_in_seconds:[1-9]/), 3_000);
    const its = asker((await instances.open(redis.url, SHORT_MS)).engine);
    expect((await its.begin({ purchase: 'p' })).is).toBe('begun');
    expect(await its.look({ tags: ['other'] })).toBeDefined();
  });

  it('has a window at a first start where the store has only just started', async () => {
    const one = await instances.open(redis.url, 60_000);
    await expectWindow(one, 'account', { version: 'any', askedAt: 1 });
    await redis.pass(60_000);
    expect((await asker(one.engine).begin({ purchase: 'p' })).is).toBe('begun');
  });

  it('is one that comes back empty', async () => {
    const one = await open();
    const its = asker(one.engine, 'account');
    const known = await its.keep('kept');
    await redis.kill();
    await vi.waitFor(() => expect(one.isThere()).toBe(false));
    await redis.start();
    await ready(one);
    await expectWindow(one, 'account', known);
    await redis.pass(WINDOW_MS);
    expect((await its.look()).version).not.toBe(known.version);
    expect(one.changes).toEqual([false, true]);
  });

  it('is one that comes back with its data; marks and records are as they were, versions are not', async () => {
    const one = await open();
    const its = asker(one.engine, 'account');
    const known = await its.keep('kept', { tags: ['t'] });
    const record = { key: 'r', value: valueOf('under way'), lifeMs: 600_000 };
    await its.begin({ nonce: 'n', tags: ['u'], record, purchase: 'bought' });
    const dir = await redis.snapshot();
    await redis.kill();
    await redis.start(dir);
    await ready(one);
    await expectWindow(one, 'account', known);
    expect(await its.begin({ record })).toMatchObject({ is: 'record', value: record.value });
    expect((await its.begin({ purchase: 'bought' })).is).toBe('equal');
    await redis.pass(WINDOW_MS);
    expect((await its.snapshot({ tags: ['u'] })).reply).toBeUndefined();
    const after = await its.look();
    expect([after.copy, after.version === known.version]).toEqual([undefined, false]);
  });

  it('is one that was emptied by FLUSHALL, for an instance that knew it', async () => {
    const one = await open();
    const known = await asker(one.engine, 'account').keep('kept');
    await redis.client.flushall();
    await expectWindow(one, 'account', known);
  });

  it('is one that was emptied, also for a new instance, which did not know it', async () => {
    const one = await open();
    await asker(one.engine, 'account').keep('kept');
    await vi.waitFor(async () => expect(await redis.client.info('server')).toMatch(/uptime_in_seconds:[1-9]/), 3_000);
    const before = await asker(one.engine, 'account').snapshot();
    await redis.client.flushall();
    const newcomer = await instances.open(redis.url, SHORT_MS);
    expect((await asker(newcomer.engine, 'account').begin({ tags: ['x'], purchase: 'x' })).is).toBe('begun');
    await expectWindow(one, 'account', { version: before.reply?.version ?? '', askedAt: before.now });
    await expectWindow(newcomer, 'account', { version: 'any', askedAt: 1 });
  });

  it('is one to which the address leads again, once, for all instances', async () => {
    const elsewhere = await another();
    const address = await startSwitch(redis);
    closing.push(() => address.close());
    const stays = await open();
    const goes = await open(address.url);
    const its = asker(stays.engine, 'account');
    const known = await its.keep('kept');
    const before = await tokenOf(redis);
    address.to(elsewhere);
    await vi.waitFor(async () => {
      await goes.engine.snapshot('account', { keys: [] });
      expect(await elsewhere.client.exists('portico:{0}:id')).toBe(1);
    }, 5_000);
    address.to(redis);
    // It is reported at once, without a request.
    await vi.waitFor(async () => expect(await tokenOf(redis)).not.toBe(before), 5_000);
    expect((await its.snapshot()).reply).toBeUndefined();
    await expectWindow(goes, 'account', known);
    await redis.pass(WINDOW_MS);
    const after = await its.look();
    expect([after.copy, after.version === known.version]).toEqual([undefined, false]);
    const settled = await tokenOf(redis);
    for (let i = 0; i < 10; i++) for (const { engine } of [goes, stays]) await engine.snapshot('account', { keys: [] });
    expect(await tokenOf(redis)).toBe(settled);
  });

  it('is one that was a replica in between', async () => {
    const one = await open();
    const its = asker(one.engine, 'account');
    const known = await its.keep('kept');
    const other = await another();
    await other.client.replicaof('127.0.0.1', redis.port);
    await vi.waitFor(
      async () => expect(await other.client.info('replication')).toMatch('master_link_status:up'),
      5_000,
    );
    await other.client.replicaof('NO', 'ONE');
    await redis.client.replicaof('127.0.0.1', other.port);
    await vi.waitFor(
      async () => expect(await redis.client.info('replication')).toMatch('master_link_status:up'),
      5_000,
    );
    await expect(its.snapshot()).rejects.toThrow();
    await redis.client.replicaof('NO', 'ONE');
    await ready(one);
    await expectWindow(one, 'account', known);
    expect([...one.troubles]).toContain('READONLY');
  });

  it('is a replica that was promoted', async () => {
    const one = await open();
    const known = await asker(one.engine, 'account').keep('kept');
    const other = await another();
    await other.client.replicaof('127.0.0.1', redis.port);
    await vi.waitFor(
      async () => expect(await other.client.info('replication')).toMatch('master_link_status:up'),
      5_000,
    );
    await other.client.replicaof('NO', 'ONE');
    await expectWindow(await instances.open(other.url), 'account', known);
  });

  it('is not one that gets a first replica, or loses it', async () => {
    const one = await open();
    const its = asker(one.engine, 'account');
    const known = await its.keep('kept');
    const other = await another({ 'repl-diskless-sync-delay': '0' });
    await other.client.replicaof('127.0.0.1', redis.port);
    await vi.waitFor(async () => expect(await redis.client.info('replication')).toMatch('connected_slaves:1'), 5_000);
    expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
    await other.kill();
    await vi.waitFor(async () => expect(await redis.client.info('replication')).toMatch('connected_slaves:0'), 5_000);
    expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
  });

  it('has a window from now on where its clock was set back', async () => {
    const one = await open(redis.url, SHORT_MS);
    const its = asker(one.engine, 'account');
    await its.keep('kept');
    const [run, line, token] = (await redis.client.hget('portico:{0}:id', 'id'))?.split(' ') ?? [];
    await redis.client.hset('portico:{0}:id', 'id', `${run} ${line} ${token} ${Date.now() + 3_600_000} `);
    expect((await its.snapshot()).reply).toBeUndefined();
    await sleep(SHORT_MS);
    expect(await its.look()).toBeDefined();
  });
});
