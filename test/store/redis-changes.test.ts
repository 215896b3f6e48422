import { Redis } from 'ioredis';
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { SCRIPTS } from '../../src/entry/node/redis/scripts.ts';
import { LEASE_MS, MAX_TAGS } from '../../src/store/shared/engine.ts';
import { hasRedis, SKIPPED, startRedis } from '../support/redis.ts';
import { type Asker, asker, COPY, valueOf } from './engine-asker.ts';
import { type EngineWorld, engineWorld, type OpenedEngine, ready, WINDOW_MS } from './engine-world.ts';

const RUNS = process.env['CI'] === undefined ? 40 : 400;
const ID = 'portico:{0}:id';
const CHANNEL = 'portico:changes:0';
const LIFE_MS = 600_000;
/** What a busy machine takes between two calls, at most. */
const SLACK_MS = 3_000;
const record = { key: 'r', value: valueOf('r'), lifeMs: LIFE_MS };

/** Hears what is published, up to now. */
async function listener(url: string) {
  const client = new Redis(url);
  const heard: string[] = [];
  client.on('message', (_, message) => void heard.push(message));
  await client.subscribe(CHANNEL);
  const until = async (sender: Redis, end: string) => {
    await sender.publish(CHANNEL, end);
    await vi.waitFor(() => expect(heard).toContain(end), { timeout: 10_000, interval: 1 });
    return heard.splice(0).filter((message) => message !== end);
  };
  return { until, close: () => client.disconnect() };
}

const after = async (prepare: () => Promise<unknown>, act: () => Promise<unknown>) => {
  await prepare();
  return act;
};

const between = (least: number) => (ms: number | undefined) => {
  expect(ms).toBeGreaterThanOrEqual(least);
  expect(ms).toBeLessThan(least + SLACK_MS);
};

const sinceOfRecord = async (its: Asker) => {
  const begun = await its.begin({ record });
  return begun.is === 'record' ? begun.sinceMs : Number.NaN;
};

describe.skipIf(!hasRedis)(`changes in Redis${SKIPPED}`, () => {
  let world: EngineWorld;
  let one: OpenedEngine;
  let its: Asker;
  let ears: Awaited<ReturnType<typeof listener>>;

  beforeAll(async () => {
    world = await engineWorld();
    one = await world.open();
    await vi.waitFor(() => expect(one.engine.changes?.isListening).toBe(true), 10_000);
    ears = await listener(world.redis.url);
  });
  afterAll(async () => {
    ears.close();
    await world.close();
  });
  beforeEach(() => {
    its = asker(one.engine);
  });

  const heard = () => ears.until(world.redis.client, 'end');
  const number = async () => Number((await world.redis.client.hget(ID, 'n')) ?? 0);
  const hello = async () => world.redis.client.eval(SCRIPTS.hello, 1, ID, 'seed', '', 0, WINDOW_MS, '');
  const revoke = (revoked: { id?: string; epoch?: number }) =>
    one.engine.change(its.account, { revoked: { ...revoked, lifeMs: LIFE_MS } });
  const drop = (what: 'key' | 'everything') => its.save({ version: 'any', askedAt: 0, copy: undefined, drop: what });
  const saveAgain = async (freshMs: number) => {
    const known = await its.keep('first', {}, { freshMs });
    return () => its.save({ ...known, askedAt: known.askedAt + 1 });
  };

  /** What is prepared returns what is then done. */
  const CHANGES: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
    'a write that begins': async () => () => its.begin(),
    'a write that begins, with a key, and by a session of a higher epoch': async () => () =>
      its.begin({ record, session: { id: 'one', epoch: 3 } }),
    'the end of a write whose mark is not there': () => after(its.look, () => its.end('n', 'done')),
    'a refusal of a write whose mark is not there': () => after(its.look, () => its.end('n', 'refused')),
    'an unknown end of a write whose mark is not there': async () => () => its.end('n', 'unknown'),
    'the end of a write whose mark has expired': () =>
      after(
        async () => {
          await its.look();
          await its.begin({ nonce: 'n', markMs: 10_000 });
          await world.redis.pass(10_000);
        },
        () => its.end('n', 'done'),
      ),
    'a refused credential': () =>
      after(
        () => its.begin({ nonce: 'n' }),
        () => its.end('n', 'refused', { dropEverything: true }),
      ),
    'a refused credential of a write that is not known': () =>
      after(its.look, () => its.end('n', 'refused', { dropEverything: true })),
    'a copy that is dropped': () =>
      after(
        () => its.keep('kept'),
        () => drop('key'),
      ),
    'everything that is dropped': () => after(its.look, () => drop('everything')),
    'a copy in the place of one that was fresh': () => saveAgain(COPY.freshMs),
    'a session that is revoked': async () => () => revoke({ id: 'one' }),
    'a session that is revoked with its epoch': async () => () => revoke({ id: 'one', epoch: 1 }),
    'a higher epoch': () =>
      after(
        () => revoke({ epoch: 1 }),
        () => revoke({ epoch: 2 }),
      ),
    'a session of a higher epoch that is asked for': async () => () =>
      one.engine.snapshot(its.account, { session: 'one', sessionEpoch: 1, keys: [] }),
  };

  const window = { name: 'minute', lengthMs: 60_000, limit: 1 };
  const NO_CHANGES: typeof CHANGES = {
    'a snapshot that makes versions': async () => () =>
      one.engine.snapshot(its.account, { window, session: 'one', keys: [{ key: 'k', tags: ['t'], lease: 'l' }] }),
    'a snapshot of what is kept': () => after(() => its.keep('kept'), its.look),
    'a snapshot after a mark has expired': () =>
      after(async () => {
        await its.look();
        await its.begin({ markMs: 10_000 });
        await world.redis.pass(10_000);
      }, its.look),
    'a snapshot by a session of an epoch that is known': () =>
      after(
        () => revoke({ epoch: 1 }),
        () => one.engine.snapshot(its.account, { session: 'one', sessionEpoch: 1, keys: [] }),
      ),
    'a copy that is kept': async () => () => its.keep('kept'),
    'a copy in the place of one that was not fresh': () => saveAgain(0),
    'a copy that is not kept': () =>
      after(
        () => its.keep('kept'),
        () => its.save({ version: 'old', askedAt: 1 }),
      ),
    'the end of a lease': async () => () => its.save({ version: '', askedAt: 0, copy: undefined, lease: 'l' }),
    'a drop where nothing is kept': async () => () => drop('everything'),
    'a drop of a copy where nothing is kept': async () => () => drop('key'),
    'a write that has begun already': () =>
      after(
        () => its.begin({ nonce: 'n' }),
        () => its.begin({ nonce: 'n' }),
      ),
    'a write over its limit': async () => () => its.begin({ window: { ...window, limit: 0 } }),
    'a write whose key is taken': () =>
      after(
        () => its.begin({ record }),
        () => its.begin({ record }),
      ),
    'a write equal to one under way': () =>
      after(
        () => its.begin({ purchase: 'p' }),
        () => its.begin({ purchase: 'p' }),
      ),
    'a write in a cooldown': () =>
      after(
        () => one.engine.change(its.account, { cooldownMs: 10_000 }),
        () => its.begin(),
      ),
    'a write by a session that is over': () =>
      after(
        () => revoke({ id: 'one' }),
        () => its.begin({ session: { id: 'one', epoch: 0 } }),
      ),
    'a write that has ended before it began': () =>
      after(
        () => its.end('n', 'not_sent'),
        () => its.begin({ nonce: 'n' }),
      ),
    ...Object.fromEntries(
      (['done', 'refused', 'unknown', 'not_sent'] as const).map((how) => [
        `the end of a write whose mark stands: ${how}`,
        () =>
          after(
            async () => {
              await its.look({ tags: ['other'] });
              await its.begin({ nonce: 'n', record });
            },
            () => its.end('n', how, { record }),
          ),
      ]),
    ),
    'the end of a write that was not sent and never began': () => after(its.look, () => its.end('n', 'not_sent')),
    'the end of a write, mark and versions of which are not there': async () => () => its.end('n', 'done'),
    'a refused credential where nothing is kept': async () => () => its.end('n', 'refused', { dropEverything: true }),
    'the end of a write with too many tags, which renews all versions': () =>
      after(
        async () => {
          await its.look();
          await its.begin({ nonce: 'n' });
        },
        () => its.end('n', 'done', { tags: Array.from({ length: MAX_TAGS + 1 }, (_, i) => `tag ${i}`) }),
      ),
    'a session that is revoked once more': () =>
      after(
        () => revoke({ id: 'one', epoch: 1 }),
        () => revoke({ id: 'one', epoch: 1 }),
      ),
    'a lower epoch': () =>
      after(
        () => revoke({ epoch: 2 }),
        () => revoke({ epoch: 1 }),
      ),
    'a lease that is renewed, a cooldown': () =>
      after(
        () => its.look({ lease: 'l' }),
        () =>
          one.engine.change(its.account, {
            renewed: { key: 'k', lease: 'l' },
            cooldownMs: LEASE_MS,
          }),
      ),
    'a question for the id': async () => hello,
  };

  it.each(Object.keys(CHANGES))('are numbered and published, once: %s', async (name) => {
    const act = await CHANGES[name]?.();
    const [before] = [await number(), await heard()];
    await act?.();
    const [, , token] = (await world.redis.client.hget(ID, 'id'))?.split(' ') ?? [];
    expect(await heard()).toEqual([`${before + 1} ${token} ${its.account}`]);
    expect(await number()).toBe(before + 1);
    expect(await hello()).toEqual([token, before + 1, 0]);
  });

  it.each(Object.keys(NO_CHANGES))('are not: %s', async (name) => {
    const act = await NO_CHANGES[name]?.();
    const [before] = [await number(), await heard()];
    await act?.();
    expect(await heard()).toEqual([]);
    expect(await number()).toBe(before);
  });

  it('are published for each database on its own channel', async () => {
    const other = await world.openAt(2);
    await ready(other);
    const known = await number();
    await asker(other.engine).begin();
    expect([await heard(), await number()]).toEqual([[], known]);
  });

  it('are numbered and go on where the user may not publish', async () => {
    await world.redis.client.call(
      'ACL',
      'SETUSER',
      'mute',
      'on',
      '>p',
      '~*',
      'resetchannels',
      '+@all',
      '-publish',
      '-pubsub',
    );
    const mute = await world.openAt(0, 'mute:p@');
    const before = await number();
    const by = asker(mute.engine);
    expect((await by.begin({ nonce: 'n', record })).is).toBe('begun');
    await by.end('n', 'done', { record });
    expect(await by.begin({ record })).toMatchObject({ is: 'record', value: record.value });
    const large = { ...window, limit: 100 };
    for (const used of [1, 2]) {
      const { use } = await mute.engine.snapshot(its.account, { window: large, advance: 8, keys: [] });
      expect(use).toMatchObject({ used });
    }
    expect([await heard(), await number()]).toEqual([[], before + 1]);
    expect([...mute.troubles]).not.toContain('NOPERM');
  });

  it('come with whether the store has replicas', async () => {
    expect(await hello()).toEqual([expect.any(String), expect.any(Number), 0]);
    const replica = await startRedis();
    await replica.client.replicaof('127.0.0.1', world.redis.port);
    await vi.waitFor(async () => expect(await hello()).toEqual([expect.any(String), expect.any(Number), 1]), 10_000);
    await replica.close();
  });

  describe('requests counted in advance', () => {
    const lengthMs = 60_000;

    it('are taken from the second request of a window on', async () => {
      const ask = () =>
        one.engine.snapshot(its.account, { window: { name: 'w', lengthMs, limit: 100 }, advance: 16, keys: [] });
      expect((await ask()).use).toEqual({ used: 1, leftMs: expect.any(Number) });
      let before = 1;
      while (before < 100) {
        const { used = 0, advance = 0 } = (await ask()).use ?? {};
        // Two listen, the instance and this test; one of them may just be connecting again.
        const half = Math.floor((100 - before - 1) / 2);
        expect([1, 2, 3].map((many) => Math.min(16, Math.floor(half / many)))).toContain(advance);
        expect(used).toBe(before + 1 + advance);
        before = used;
      }
      expect((await ask()).use).toEqual({ used: 101, leftMs: expect.any(Number) });
      await world.redis.pass(lengthMs);
      expect((await ask()).use).toMatchObject({ used: 1 });
    });

    it('are never more than the limit together, nor than half of what is left, whoever asks and listens', async () => {
      const another = await world.open();
      const steps = fc.constantFrom(...(['read', 'read', 'read', 'write'] as const));
      const plays = fc.record({
        limit: fc.integer({ min: 0, max: 60 }),
        listeners: fc.integer({ min: 0, max: 3 }),
        all: fc.array(
          fc.record({ by: fc.integer({ min: 0, max: 1 }), is: steps, advance: fc.integer({ min: 0, max: 20 }) }),
          {
            minLength: 10,
            maxLength: 80,
            size: 'max',
          },
        ),
      });
      await fc.assert(
        fc.asyncProperty(plays, async ({ limit, listeners, all }) => {
          const account = asker(one.engine).account;
          const listening = await Promise.all(Array.from({ length: listeners }, () => listener(world.redis.url)));
          const limited = { ...window, limit };
          const replies = await Promise.all(
            all.map(async ({ by, is, advance }) => {
              const { engine } = [one, another][by] ?? one;
              const { use } =
                is === 'read'
                  ? await engine.snapshot(account, { window: limited, advance, keys: [] })
                  : await asker(engine, account).begin({ window: limited });
              return { used: use?.used ?? 0, taken: use?.advance ?? 0, asked: is === 'read' ? advance : 0 };
            }),
          );
          for (const { close } of listening) close();
          let letIn = 0;
          for (const { used, taken, asked } of replies) {
            expect(taken).toBeGreaterThanOrEqual(0);
            expect(taken).toBeLessThanOrEqual(asked);
            expect(taken * 2 * (listeners + 1)).toBeLessThanOrEqual(Math.max(0, limit - (used - taken)));
            letIn += (used <= limit ? 1 : 0) + taken;
          }
          expect(letIn).toBeLessThanOrEqual(limit);
          expect(Math.max(...replies.map(({ used }) => used))).toBe(
            replies.reduce((sum, { taken }) => sum + 1 + taken, 0),
          );
        }),
        { numRuns: RUNS },
      );
    });
  });

  describe('when it was announced', () => {
    it('is said of a settled record, from its mark on', async () => {
      await its.begin({ nonce: 'n', record });
      await world.redis.pass(5_000);
      expect(await sinceOfRecord(its)).toBeUndefined();
      await its.end('n', 'unknown', { record });
      between(5_000)(await sinceOfRecord(its));
      await world.redis.pass(5_000);
      await its.end('n', 'done', { record });
      between(10_000)(await sinceOfRecord(its));
      await world.redis.pass(-LIFE_MS);
      expect(await sinceOfRecord(its)).toBe(0);
    });

    it('is the end of the write where its mark is not there any more', async () => {
      await its.begin({ nonce: 'n', markMs: 10_000, record });
      await world.redis.pass(20_000);
      await its.end('n', 'done', { record });
      between(0)(await sinceOfRecord(its));
    });

    it('is said of an equal purchase whose outcome is not known, and of none that is under way', async () => {
      await its.begin({ nonce: 'n', purchase: 'p' });
      expect(await its.begin({ purchase: 'p' })).toEqual({ is: 'equal', standing: 'under_way' });
      await its.end('n', 'unknown', { purchase: 'p' });
      await world.redis.pass(5_000);
      const begun = await its.begin({ purchase: 'p' });
      expect(begun).toMatchObject({ is: 'equal', standing: 'unknown' });
      between(5_000)(begun.sinceMs);
    });

    it('is not known of a record of an earlier version', async () => {
      const key = `portico:{0}:r:${its.account}:r`;
      await world.redis.client.set(key, 'n 0\nvalue', 'PX', LIFE_MS);
      const begun = await its.begin({ record });
      expect(begun).toMatchObject({ is: 'record', isOver: false, value: Buffer.from('value') });
      expect(begun).not.toHaveProperty('sinceMs');
      await world.redis.client.del(key);
    });

    it('is said of sessions from the last change on, whoever asks', async () => {
      const states = async () => {
        const { session } = await one.engine.snapshot(its.account, { session: 'one', keys: [] });
        return [session?.sinceMs, (await one.engine.session(its.account, 'one')).sinceMs];
      };
      expect(await states()).toEqual([undefined, undefined]);
      await revoke({ id: 'one' });
      await world.redis.pass(5_000);
      await revoke({ id: 'one' });
      (await states()).forEach(between(5_000));
      const begun = await its.begin({ session: { id: 'one', epoch: 0 } });
      between(5_000)(begun.is === 'revoked' ? begun.sinceMs : undefined);
      await revoke({ epoch: 1 });
      await world.redis.pass(7_000);
      (await states()).forEach(between(7_000));
      const { session } = await one.engine.snapshot(its.account, { session: 'two', sessionEpoch: 2, keys: [] });
      expect(session).toEqual({ isRevoked: false, epoch: 2, sinceMs: 0 });
      await world.redis.pass(-LIFE_MS);
      expect(await states()).toEqual([0, 0]);
    });
  });

  it('of a later protocol are none of ours: nothing is asked and nothing changed', async () => {
    await world.redis.client.hset(ID, 'v', 3);
    const before = await world.redis.dump();
    await expect(its.snapshot()).rejects.toThrow(/^PROTOCOL .*protocol 3, this one has 2.*upgrade this gateway/);
    await expect(its.begin()).rejects.toThrow(/^PROTOCOL/);
    expect(await world.redis.dump()).toEqual(before);
    expect([one.isThere(), [...one.troubles].includes('PROTOCOL')]).toEqual([false, true]);
    await world.redis.client.hset(ID, 'v', 2);
    await vi.waitFor(() => expect(one.isThere()).toBe(true), 5_000);
  });

  it('of an earlier version are in another store, which its instances cannot read any more', async () => {
    const { client } = world.redis;
    const known = await its.keep('kept');
    const id = (await client.hget(ID, 'id')) ?? '';
    await client.del(ID);
    await client.set(ID, id);
    expect((await its.snapshot()).reply).toBeUndefined();
    expect(await its.save(known)).toBe('void');
    expect(await client.hmget(ID, 'v', 'n')).toEqual(['2', null]);
    expect((await client.hget(ID, 'id'))?.split(' ')[2]).not.toBe(id.split(' ')[2]);
    await expect(client.get(ID)).rejects.toThrow('WRONGTYPE');
    await world.redis.pass(WINDOW_MS);
    expect((await its.look()).version).not.toBe(known.version);
  });
});
