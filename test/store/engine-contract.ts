import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LEASE_MS, MAX_LEASES } from '../../src/store/shared/engine.ts';
import { type Asker, asker, COPY, type TestedEngine, VALUE, valueOf } from './engine-asker.ts';
import { clockContract } from './engine-clock.ts';
import { sessionContract } from './engine-sessions.ts';
import { shareContract } from './engine-share.ts';
import { writeContract } from './engine-writes.ts';

const copyOf = (text: string) => ({ value: valueOf(text), ...COPY });

/** What is true of every engine. */
export function engineContract(name: string, makeEngine: () => Promise<TestedEngine>): void {
  describe(name, () => {
    let tested: TestedEngine;
    let its: Asker;

    beforeAll(async () => {
      tested = await makeEngine();
    });
    beforeEach(() => {
      its = asker(tested.engine);
    });

    const passLease = () => tested.pass(LEASE_MS + tested.slackMs);
    describe('a snapshot', () => {
      it('gives the same version of the same tags, and another to other accounts', async () => {
        const [first, again, other] = [await its.version('t'), await its.version('t'), asker(tested.engine)];
        expect(again).toBe(first);
        expect(first).not.toBe('');
        expect(await other.version('t')).not.toBe(first);
      });

      it('answers in the order asked, for keys without tags and with many too', async () => {
        await its.keep('b', { key: 'b', tags: [] });
        const keys = ['a', 'b', 'c'].map((key) => ({ key, tags: key === 'b' ? [] : [key, 'x', 'y'] }));
        const replies = (await tested.engine.snapshot(its.account, { keys })).keys;
        expect(replies.map((reply) => reply?.copy?.value?.toString())).toEqual([
          undefined,
          valueOf('b').toString(),
          undefined,
        ]);
      });

      it('has the time of the engine, which goes on', async () => {
        const { now } = await its.snapshot();
        expect((await its.snapshot()).now).toBeGreaterThanOrEqual(now);
        expect(Number.isInteger(now)).toBe(true);
      });

      it('comes with what was kept, byte by byte, and its age', async () => {
        const { reply, now: askedAt } = await its.snapshot();
        await its.save({ version: reply?.version ?? '', askedAt });
        await tested.pass(10_000);
        const { copy, version } = await its.look();
        expect(version).toBe(reply?.version);
        expect(Buffer.from(copy?.value ?? [])).toEqual(VALUE);
        expect(copy?.askedAt).toBe(askedAt);
        expect(copy?.ageMs).toBeGreaterThanOrEqual(10_000);
        expect(copy?.ageMs).toBeLessThan(10_000 + tested.slackMs);
      });

      it('sends no copy to an instance that has it', async () => {
        const known = await its.keep('kept');
        const { copy } = await its.look({ have: { ...known, isFresh: true } });
        expect(copy).toMatchObject({ askedAt: known.askedAt });
        expect(copy?.value).toBeUndefined();
      });

      it('has a copy for an instance with an older one, and none for one with a newer', async () => {
        const { version, askedAt } = await its.keep('kept');
        const older = await its.look({ have: { version, askedAt: askedAt - 1, isFresh: true } });
        expect(older.copy?.value).toBeDefined();
        const newer = await its.look({ have: { version, askedAt: askedAt + 1, isFresh: true } });
        expect(newer).toEqual({ version });
        const another = await its.look({ have: { version: 'another', askedAt: askedAt + 1, isFresh: true } });
        expect(another.copy?.value).toBeDefined();
      });

      it('has no copy after its life', async () => {
        await its.keep('kept');
        await tested.pass(COPY.lifeMs + tested.slackMs);
        expect((await its.look()).copy).toBeUndefined();
      });

      it('gives a version for as long as a read takes, and a copy under it for as long as it lives', async () => {
        const known = await its.keep('kept', {}, { lifeMs: 600_000 });
        await tested.pass(500_000);
        expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
      });
    });

    describe('a lease', () => {
      it('goes to the first that wants it, and is shown to the others', async () => {
        expect(await its.look({ lease: 'one' })).toMatchObject({ lease: 'one' });
        expect(await its.look({ lease: 'two' })).toMatchObject({ lease: 'one' });
        expect(await its.look({ lease: 'two', key: 'other' })).toMatchObject({ lease: 'two' });
        expect((await its.look()).lease).toBeUndefined();
      });

      it('is granted over a stale copy, not over a fresh one', async () => {
        await its.keep('kept');
        expect((await its.look({ lease: 'one' })).lease).toBeUndefined();
        await tested.pass(COPY.freshMs + tested.slackMs);
        expect(await its.look({ lease: 'one' })).toMatchObject({ lease: 'one', copy: { value: valueOf('kept') } });
      });

      it('is not granted to an instance with a fresh copy of this version', async () => {
        const { version, now: askedAt } = { version: await its.version('t'), now: (await its.snapshot()).now };
        const fresh = await its.look({ lease: 'one', have: { version, askedAt, isFresh: true } });
        expect(fresh).toEqual({ version });
        const old = await its.look({ lease: 'one', have: { version: 'old', askedAt, isFresh: true } });
        expect(old.lease).toBe('one');
      });

      it('is granted to an instance with a stale copy, though the store has none', async () => {
        const version = await its.version('t');
        expect((await its.look({ lease: 'one', have: { version, askedAt: 1, isFresh: false } })).lease).toBe('one');
      });

      it('expires, unless its owner asks again', async () => {
        await its.look({ lease: 'one' });
        await tested.pass(LEASE_MS * 0.6);
        expect((await its.look({ lease: 'one' })).lease).toBe('one');
        await tested.pass(LEASE_MS * 0.6);
        expect((await its.look({ lease: 'two' })).lease).toBe('one');
        await passLease();
        expect((await its.look({ lease: 'two' })).lease).toBe('two');
      });

      it('is renewed by its nonce, under its own version', async () => {
        await its.look({ lease: 'one' });
        await tested.pass(LEASE_MS * 0.6);
        await tested.engine.change(its.account, { renewed: { key: 'k', lease: 'two' } });
        await tested.engine.change(its.account, { renewed: { key: 'k', lease: 'one' } });
        await tested.pass(LEASE_MS * 0.6);
        expect((await its.look({ lease: 'two' })).lease).toBe('one');
        await its.end('n', 'done');
        await tested.engine.change(its.account, { renewed: { key: 'k', lease: 'one' } });
        expect((await its.look({ lease: 'two' })).lease).toBe('two');
      });

      it('is one of a bounded number; with more, all are forgotten', async () => {
        await its.look({ key: 'first', lease: 'one' });
        for (let n = 0; n < MAX_LEASES; n++) await its.look({ key: `key ${n}`, lease: 'one' });
        expect((await its.look({ key: 'first', lease: 'two' })).lease).toBe('two');
      });

      it('ends with a save of its owner, and of no other', async () => {
        const { now: askedAt, reply } = await its.snapshot({ lease: 'one' });
        const version = reply?.version ?? '';
        await its.save({ version, askedAt, lease: 'two', copy: undefined });
        expect((await its.look({ lease: 'two' })).lease).toBe('one');
        await its.save({ version, askedAt, lease: 'one', copy: undefined });
        expect((await its.look({ lease: 'two' })).lease).toBe('two');
      });

      it('of a version that was replaced is not waited for', async () => {
        await its.look({ lease: 'one' });
        await its.end('n', 'done');
        expect((await its.look({ lease: 'two' })).lease).toBe('two');
        expect((await its.look({ lease: 'three', waitedFor: 'one' })).lease).toBeUndefined();
      });

      it('ends with a save that is void too', async () => {
        const { now: askedAt } = await its.snapshot({ lease: 'one' });
        expect(await its.save({ version: 'another', askedAt, lease: 'one' })).toBe('void');
        expect((await its.look({ lease: 'two' })).lease).toBe('two');
      });
    });

    describe('an instance that waits for a lease', () => {
      it('goes on waiting until it is over', async () => {
        await its.look({ lease: 'one' });
        expect((await its.look({ lease: 'two', waitedFor: 'one' })).lease).toBe('one');
      });

      it('takes a newer copy of any age, and no lease', async () => {
        const known = await its.keep('old', {}, { freshMs: 0 });
        const { now: askedAt } = await its.snapshot({ lease: 'one' });
        const copy = { value: valueOf('new'), freshMs: 0, lifeMs: 90_000 };
        await its.save({ ...known, askedAt: askedAt + 1, lease: 'one', copy });
        const have = { ...known, isFresh: false };
        const { copy: found, lease } = await its.look({ lease: 'two', waitedFor: 'one', have });
        expect([Buffer.from(found?.value ?? []), lease]).toEqual([valueOf('new'), undefined]);
        const withNone = await its.look({ lease: 'two', waitedFor: 'one' });
        expect([withNone.copy?.askedAt, withNone.lease]).toEqual([askedAt + 1, undefined]);
      });

      it('gets the lease where that ended without a copy, and later ones do not wait for it', async () => {
        const { now: askedAt, reply } = await its.snapshot({ lease: 'one' });
        await its.save({ version: reply?.version ?? '', askedAt, lease: 'one', copy: undefined });
        expect((await its.look({ lease: 'two', waitedFor: 'one' })).lease).toBe('two');
        expect((await its.look({ lease: 'three', waitedFor: 'one' })).lease).toBeUndefined();
        expect((await its.look({ lease: 'four' })).lease).toBe('two');
      });

      it('gets it when its owner has died', async () => {
        await its.look({ lease: 'one' });
        await passLease();
        expect((await its.look({ lease: 'two', waitedFor: 'one' })).lease).toBe('two');
      });
    });

    describe('a save', () => {
      it('is kept, and replaced by one that was asked for later or at the same time', async () => {
        const { version, askedAt } = await its.keep('first');
        expect(await its.save({ version, askedAt: askedAt - 1, copy: copyOf('older') })).toBe('void');
        expect(await its.save({ version, askedAt, copy: copyOf('same') })).toBe('kept');
        expect(await its.save({ version, askedAt: askedAt + 1, copy: copyOf('newer') })).toBe('kept');
        expect((await its.look()).copy).toEqual({
          askedAt: askedAt + 1,
          ageMs: expect.any(Number),
          value: valueOf('newer'),
        });
      });

      it('replaces a newer one of an old version', async () => {
        const { askedAt } = await its.keep('old');
        await its.end(randomUUID(), 'done');
        const version = await its.version('t');
        expect(await its.save({ version, askedAt: askedAt - 1 })).toBe('kept');
      });

      it('is void with a version that is old, or never was', async () => {
        const { now: askedAt, reply } = await its.snapshot();
        expect(await its.save({ version: 'never', askedAt })).toBe('void');
        await its.end(randomUUID(), 'done');
        expect(await its.save({ version: reply?.version ?? '', askedAt })).toBe('void');
        expect(await asker(tested.engine).save({ version: reply?.version ?? '', askedAt })).toBe('void');
        expect((await its.look()).copy).toBeUndefined();
      });

      it('without a copy returns whether the version is the same', async () => {
        const { now: askedAt, reply } = await its.snapshot();
        const version = reply?.version ?? '';
        expect(await its.save({ version, askedAt, copy: undefined })).toBe('full');
        expect(await its.save({ version: 'another', askedAt, copy: undefined })).toBe('void');
        await its.begin();
        expect(await its.save({ version, askedAt, copy: undefined })).toBe('void');
      });

      it('drops the copy of its key, wherever it is, and no other', async () => {
        const tags = ['own', 'group'];
        const { version, askedAt } = await its.keep('kept', { tags });
        const other = await its.keep('other', { key: 'other', tags: ['of other', 'group'] });
        await its.save({ tags, version, askedAt, copy: undefined, drop: 'key' });
        const after = await its.look({ tags });
        expect(after.copy).toBeUndefined();
        expect(after.version).not.toBe(version);
        expect(await its.look({ key: 'other', tags: ['of other', 'group'] })).toMatchObject({
          version: other.version,
          copy: { askedAt: other.askedAt },
        });
      });

      it('drops everything of its account', async () => {
        const before = [await its.keep('a', { key: 'a', tags: [] }), await its.keep('b', { key: 'b', tags: ['b'] })];
        await its.save({ version: 'any', askedAt: 0, copy: undefined, drop: 'everything' });
        const after = [await its.look({ key: 'a', tags: [] }), await its.look({ key: 'b', tags: ['b'] })];
        expect(after.map(({ copy }) => copy)).toEqual([undefined, undefined]);
        expect(after.map(({ version }) => version)).not.toContain(before[0]?.version);
        expect(after.map(({ version }) => version)).not.toContain(before[1]?.version);
      });
    });

    describe('a window', () => {
      const window = { name: 'minute', lengthMs: 60_000, limit: 2 };
      const keys = [{ key: 'k', tags: ['t'] }];

      it('counts snapshots, looks up no key over its limit, and begins again', async () => {
        const ask = () => tested.engine.snapshot(its.account, { window, keys });
        const [first, second, third] = [await ask(), await ask(), await ask()];
        expect([first, second, third].map(({ use }) => use?.used)).toEqual([1, 2, 3]);
        expect([first, second, third].map((one) => one.keys.length)).toEqual([1, 1, 0]);
        expect(third.use?.leftMs).toBeGreaterThan(60_000 - tested.slackMs);
        expect(third.use?.leftMs).toBeLessThanOrEqual(60_000);
        await tested.pass(60_000 + tested.slackMs);
        expect((await ask()).use?.used).toBe(1);
      });

      it('counts reads and writes together, and each name separately', async () => {
        await tested.engine.snapshot(its.account, { window, keys });
        expect(await its.begin({ window })).toMatchObject({ is: 'begun', use: { used: 2 } });
        expect(await its.begin({ window: { ...window, name: 'other' } })).toMatchObject({ use: { used: 1 } });
        expect(await its.begin({ window })).toMatchObject({ is: 'limit', use: { used: 3 } });
      });

      it('is not counted where none is given', async () => {
        expect((await tested.engine.snapshot(its.account, { keys })).use).toBeUndefined();
        expect((await its.begin()).use).toBeUndefined();
      });
    });

    describe('a cooldown', () => {
      it('is shown until it is over, refuses writes, and is not shortened', async () => {
        const cooldown = async () => (await tested.engine.snapshot(its.account, { keys: [] })).cooldownMs;
        expect(await cooldown()).toBe(0);
        await tested.engine.change(its.account, { cooldownMs: 20_000 });
        await tested.engine.change(its.account, { cooldownMs: 10_000 });
        const left = await cooldown();
        expect(left).toBeGreaterThan(20_000 - tested.slackMs);
        expect(left).toBeLessThanOrEqual(20_000);
        expect(await its.begin()).toMatchObject({ is: 'cooldown', cooldownMs: expect.any(Number) });
        await tested.pass(20_000 + tested.slackMs);
        expect(await cooldown()).toBe(0);
        expect((await its.begin()).is).toBe('begun');
      });
    });

    writeContract(() => ({ tested, its }));
    sessionContract(() => ({ tested, its }));
    clockContract(() => ({ tested, its }));
    shareContract(() => ({ tested, its }));
  });
}
