import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Shares } from '../../src/entry/node/redis/shares.ts';
import { moveSlot, startCluster, type TestCluster } from '../support/cluster.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { asker } from './engine-asker.ts';
import { engineContract } from './engine-contract.ts';
import { Instances, LONG_WINDOW_MS, WINDOW_MS } from './engine-world.ts';

const shares = new Shares(1_024);
const idOf = (account: string) => `portico:{${shares.of(account)}}:id`;

describe.skipIf(!hasRedis)(`Cluster${SKIPPED}`, () => {
  let cluster: TestCluster;
  const instances = new Instances();

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(async () => {
    instances.close();
    await cluster.close();
  });

  /** Opens an instance that knows the id of every share. */
  const open = async (windowMs?: number) => {
    const one = await instances.open(cluster.url, windowMs);
    expect(one.changes).toEqual([]);
    await vi.waitFor(async () => {
      const sizes = await Promise.all(cluster.masters.map(({ client }) => client.dbsize()));
      expect(sizes.reduce((sum, size) => sum + size)).toBeGreaterThanOrEqual(1_024);
    }, 5_000);
    expect(one.changes).toEqual([]);
    return one;
  };
  const accountsOn = async (master: TestCluster['masters'][number] | undefined) => {
    const names = Array.from({ length: 60 }, (_, i) => `account ${i}`);
    const all = await Promise.all(names.map(async (name) => ({ name, at: await cluster.masterOf(idOf(name)) })));
    return all.filter(({ at }) => at === master).map(({ name }) => name);
  };

  engineContract('keeps the contract of the engine', async () => {
    const { engine } = await open();
    await cluster.pass(WINDOW_MS);
    return { engine, pass: (ms) => cluster.pass(ms), slackMs: 3_000 };
  });

  it('spreads accounts over all masters', async () => {
    const { engine } = await open();
    for (const master of cluster.masters) {
      const [account = ''] = await accountsOn(master);
      await asker(engine, account).keep('kept');
      expect(await master.client.keys(`*:a:${account}`)).toHaveLength(1);
      expect(await master.client.keys(`*:c:${account}:k`)).toHaveLength(1);
    }
  });

  it('numbers and publishes nothing, and counts nothing in advance', async () => {
    const { engine } = await open();
    const its = asker(engine);
    const id = idOf(its.account);
    await its.begin();
    const window = { name: 'minute', lengthMs: 60_000, limit: 100 };
    for (const used of [1, 2, 3]) {
      const { use } = await engine.snapshot(its.account, { window, advance: 16, keys: [] });
      expect(use).toEqual({ used, leftMs: expect.any(Number) });
    }
    const master = await cluster.masterOf(id);
    expect(await master?.client.hmget(id, 'n', 'v')).toEqual([null, '2']);
  });

  it('has no store for an account while its slot moves, and another one afterwards', async () => {
    const [first, second] = cluster.masters;
    if (!first || !second) throw new Error('there is no master');
    const [account = ''] = await accountsOn(first);
    const one = await open();
    const its = asker(one.engine, account);
    const known = await its.keep('kept');
    const begunAt: number[] = [];
    await moveSlot({ key: idOf(account), from: first, to: second }, async (step) => {
      begunAt.push(performance.now());
      if (step === 'half') await expect(its.snapshot()).rejects.toThrow(/TRYAGAIN/);
      else await expect(its.snapshot({ key: 'not there' })).rejects.toThrow(/TRYAGAIN/);
      expect(performance.now() - (begunAt.at(-1) ?? 0)).toBeLessThan(200);
    });
    expect([...one.troubles]).toContain('TRYAGAIN');
    expect((await its.snapshot()).reply).toBeUndefined();
    expect(await its.save(known)).toBe('void');
    expect((await its.begin({ purchase: 'p' })).is).toBe('another_store');
    await cluster.pass(WINDOW_MS);
    const after = await its.look();
    expect([after.copy, after.version === known.version]).toEqual([undefined, false]);
    expect(await second.client.exists(idOf(account))).toBe(1);
    await vi.waitFor(() => expect(one.isThere()).toBe(true), 5_000);
  });

  it('promotes a replica, which is another store for all shares of the node, and for no others', async () => {
    const [first, second] = cluster.masters;
    const [[lost = '', too = ''], [other = '']] = [(await accountsOn(first)).slice(1), await accountsOn(second)];
    instances.close(); // one that comes later from the store before begins the window anew
    const one = await open(LONG_WINDOW_MS);
    await cluster.pass(LONG_WINDOW_MS);
    const [its, also, others] = [lost, too, other].map((name) => asker(one.engine, name));
    if (!its || !also || !others) throw new Error('there are too few accounts');
    const known = { its: await its.keep('a'), also: await also.keep('b'), others: await others.keep('c') };
    await its.begin({ tags: ['u'], purchase: 'bought' });
    await first?.client.call('WAIT', '1', '0');
    await first?.kill();
    await cluster.promote();
    await vi.waitFor(() => its.snapshot(), { timeout: 45_000, interval: 20 });
    await vi.waitFor(() => expect(one.isThere()).toBe(true), { timeout: 45_000, interval: 5 });
    expect((await its.snapshot()).reply).toBeUndefined();
    expect((await also.snapshot()).reply).toBeUndefined();
    expect((await its.begin({ purchase: 'bought' })).is).toBe('equal');
    expect(await also.save(known.also)).toBe('void');
    await vi.waitFor(async () =>
      expect(await others.look()).toMatchObject({ version: known.others.version, copy: {} }),
    );
    await cluster.replica.pass(LONG_WINDOW_MS);
    expect((await its.look()).version).not.toBe(known.its.version);
    expect(one.changes.slice(0, 2)).toEqual([false, true]);
  });
});
