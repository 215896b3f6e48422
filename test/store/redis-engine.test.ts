import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { Save } from '../../src/store/shared/engine.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { asker, VALUE } from './engine-asker.ts';
import { engineContract } from './engine-contract.ts';
import { engineWorld } from './engine-world.ts';

describe.skipIf(!hasRedis)(`Redis${SKIPPED}`, () => {
  let close: (() => Promise<void>) | undefined;
  afterAll(() => close?.());

  engineContract('keeps the contract of the engine', async () => {
    const world = await engineWorld();
    close = () => world.close();
    const { engine } = await world.open();
    return { engine, pass: (ms) => world.redis.pass(ms), slackMs: 3_000 };
  });

  it('takes random text, which earlier releases had as the epoch of sessions, for the first', async () => {
    const world = await engineWorld();
    const { engine } = await world.open();
    await world.redis.client.hset('portico:{0}:a:account', 'x', randomUUID());
    const stateOf = async () => (await engine.snapshot('account', { session: 'one', keys: [] })).session;
    expect([await stateOf(), await engine.session('account', 'one')]).toMatchObject([{ epoch: 1 }, { epoch: 1 }]);
    await engine.change('account', { revoked: { epoch: 2, lifeMs: 60_000 } });
    expect([await stateOf(), await engine.session('account', 'one')]).toMatchObject([{ epoch: 2 }, { epoch: 2 }]);
    await world.close();
  });

  it('keeps a purchase in the way of equal ones until its client is answered, and hides nothing by it', async () => {
    const world = await engineWorld();
    const its = asker((await world.open()).engine);
    const record = { key: 'r', value: VALUE, lifeMs: 3_600_000 };
    const ended = { purchase: 'p', heldMs: 60_000 };
    const equal = { is: 'equal', standing: 'under_way' };
    await its.begin({ nonce: 'n', purchase: 'p' });
    for (const times of ['once', 'reported again']) {
      await its.end('n', 'done', ended);
      expect(await its.look(), times).toBeDefined();
      expect(await its.begin({ purchase: 'p' }), times).toMatchObject(equal);
      expect(await its.begin({ purchase: 'p', record }), times).toMatchObject(equal);
    }
    expect((await its.begin({ nonce: 'm', purchase: 'q', record, tags: ['other'] })).is).toBe('begun');
    await its.end('m', 'done', { ...ended, purchase: 'q', record, tags: ['other'] });
    expect(await its.begin({ purchase: 'q' })).toMatchObject(equal);
    expect((await its.begin({ purchase: 'q', record })).is).toBe('record');
    expect((await its.begin({ nonce: 'o', purchase: 'q', record: { ...record, key: 's' } })).is).toBe('begun');
    await its.end('o', 'not_sent', { purchase: 'q' });
    await world.redis.pass(60_000);
    const { version } = await its.look();
    for (const purchase of ['p', 'q']) {
      expect((await its.begin({ nonce: purchase, purchase, tags: ['other'] })).is).toBe('begun');
      await its.end(purchase, 'not_sent', { tags: ['other'] });
    }
    expect(await its.version('t')).toBe(version);
    await world.close();
  });

  it('keeps none in the way that was answered later than it is held', async () => {
    const world = await engineWorld();
    const its = asker((await world.open()).engine);
    await its.begin({ nonce: 'n', purchase: 'p' });
    await world.redis.pass(5_000);
    await its.end('n', 'done', { purchase: 'p', heldMs: 5_000 });
    expect((await its.begin({ purchase: 'p' })).is).toBe('begun');
    await world.close();
  });

  it('sends saves of one moment together, and counts what they take', async () => {
    const world = await engineWorld();
    const one = await world.open();
    const its = asker(one.engine);
    const keys = ['a', 'b', 'c', 'd'].map((key) => ({ key, tags: [`=${key}`, 't'] }));
    const { now: askedAt, keys: replies } = await one.engine.snapshot(its.account, { keys });
    const save = (i: number, more: Partial<Save> = {}) =>
      its.save({ key: '', tags: [], ...keys[i], version: replies[i]?.version ?? '', askedAt, ...more });
    const asked = [
      save(0),
      save(1, { version: 'old' }),
      save(2, { copy: undefined }),
      save(3),
      save(3, { drop: 'key' }),
    ];
    expect(await Promise.all(asked)).toEqual(['kept', 'void', 'full', 'kept', 'void']);
    expect(one.commands.filter((command) => command.startsWith('save'))).toHaveLength(2);
    const after = await one.engine.snapshot(its.account, { keys });
    expect(after.keys.map((key) => key?.copy !== undefined)).toEqual([true, false, false, false]);
    const held = await world.redis.client.hgetall(`portico:{0}:h:${its.account}`);
    expect(Object.keys(held).toSorted()).toEqual(['C', 'ca']);
    expect(held['ca']).toMatch(new RegExp(`^${held['C']} `));
    await world.close();
  });

  it('keeps an account that was only read packed', async () => {
    const world = await engineWorld();
    const { engine } = await world.open();
    const [key, lease, tags] = ['k'.repeat(16), randomUUID(), ['t'.repeat(16)]];
    const window = { name: 'requests by account', lengthMs: 60_000, limit: 600 };
    const { now, keys } = await engine.snapshot('account', { window, keys: [{ key, tags, lease }] });
    expect(keys[0]?.lease).toBe(lease);
    const copy = { value: Buffer.from('sealed'), freshMs: 1_000, lifeMs: 1_000 };
    await engine.save('account', { key, tags, version: keys[0]?.version ?? '', askedAt: now, lease, copy });
    expect(await world.redis.client.object('ENCODING', 'portico:{0}:a:account')).toBe('listpack');
    await world.close();
  });
});
