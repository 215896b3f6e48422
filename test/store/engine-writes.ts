import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_TAGS } from '../../src/store/shared/engine.ts';
import { MAX_MARKS, type WriteBegin } from '../../src/store/writes.ts';
import { EVERYTHING as ALL } from '../../src/store/store.ts';
import { type Asker, asker, type TestedEngine, valueOf } from './engine-asker.ts';

const record = (key = 'r', text = 'under way') => ({ key, value: valueOf(text), lifeMs: 3_600_000 });

const tagsUpTo = (count: number) => Array.from({ length: count }, (_, i) => `tag ${i}`);

/** What is true of writes in every engine: marks, records, purchases. */
export function writeContract(current: () => { readonly tested: TestedEngine; readonly its: Asker }): void {
  let tested: TestedEngine;
  let its: Asker;

  beforeEach(() => {
    ({ tested, its } = current());
  });

  describe('a mark', () => {
    it('hides what has its tags: no version, no copy, no lease, and nothing is kept', async () => {
      const { version, askedAt } = await its.keep('kept', { tags: ['t', 'u'] });
      await its.begin({ tags: ['u'] });
      expect((await its.snapshot({ tags: ['t', 'u'], lease: 'one' })).reply).toBeUndefined();
      expect(await its.save({ tags: ['t', 'u'], version, askedAt: askedAt + 1 })).toBe('void');
      expect(await its.look({ tags: ['t'] })).toBeDefined();
    });

    it('of everything hides all, and all of the other accounts stay', async () => {
      await its.begin({ tags: [ALL] });
      expect((await its.snapshot({ tags: [] })).reply).toBeUndefined();
      expect((await its.snapshot({ tags: ['t'] })).reply).toBeUndefined();
      expect(await asker(tested.engine).look()).toBeDefined();
    });

    it.each(['done', 'refused'] as const)('goes when its write is %s, and leaves new versions', async (how) => {
      const known = await its.keep('kept');
      const other = await its.version('other');
      await its.begin({ nonce: 'n' });
      await its.end('n', how);
      const after = await its.look();
      expect(after.copy).toBeUndefined();
      expect(after.version).not.toBe(known.version);
      expect(await its.version('other')).toBe(other);
      expect(await its.save(known)).toBe('void');
    });

    it('leaves versions as they are when its write was not sent', async () => {
      const known = await its.keep('kept');
      await its.begin({ nonce: 'n' });
      await its.end('n', 'not_sent');
      expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
    });

    it('stays when the outcome is unknown, and leaves new versions at its time', async () => {
      const { version } = await its.keep('kept', {}, { lifeMs: 600_000 });
      await its.begin({ nonce: 'n', markMs: 20_000 });
      await its.end('n', 'unknown', { markMs: 20_000 });
      expect((await its.snapshot()).reply).toBeUndefined();
      await tested.pass(20_000 + tested.slackMs);
      const after = await its.look();
      expect(after.copy).toBeUndefined();
      expect(after.version).not.toBe(version);
    });

    it('expires where no end is reported, and leaves new versions', async () => {
      const known = await its.keep('kept', {}, { lifeMs: 600_000 });
      await its.begin({ markMs: 200_000 });
      await tested.pass(200_000 - tested.slackMs);
      expect((await its.snapshot()).reply).toBeUndefined();
      await tested.pass(2 * tested.slackMs);
      const after = await its.look();
      expect(after.copy).toBeUndefined();
      expect(after.version).not.toBe(known.version);
      expect(await its.save(known)).toBe('void');
    });

    it('is one of two: each ends separately', async () => {
      const known = await its.keep('kept');
      await Promise.all([its.begin({ nonce: 'n' }), its.begin({ nonce: 'm' })]);
      await its.end('n', 'not_sent');
      expect((await its.snapshot()).reply).toBeUndefined();
      await its.end('m', 'not_sent');
      expect((await its.look()).version).toBe(known.version);
    });

    it('that is missing when its write ends leaves new versions too', async () => {
      const { version } = await its.keep('kept');
      await its.end('never begun', 'done');
      const next = await its.version('t');
      expect(next).not.toBe(version);
      await its.end('never begun either', 'refused');
      expect(await its.version('t')).not.toBe(next);
    });

    it('that is missing is set again when the outcome is unknown', async () => {
      await its.end('n', 'unknown', { markMs: 30_000, purchase: 'p' });
      expect((await its.snapshot()).reply).toBeUndefined();
      expect(await its.begin({ purchase: 'p' })).toMatchObject({ is: 'equal', standing: 'unknown' });
      await tested.pass(30_000 + tested.slackMs);
      expect(await its.look()).toBeDefined();
      expect((await its.begin({ purchase: 'p' })).is).toBe('begun');
    });

    it('that is missing when its write was not sent hides nothing, and cannot be set later', async () => {
      const { version } = await its.keep('kept');
      await its.end('n', 'not_sent', { markMs: 20_000 });
      expect((await its.look()).version).toBe(version);
      expect((await its.begin({ nonce: 'n' })).is).toBe('over');
      expect((await its.look()).version).toBe(version);
      await tested.pass(20_000 + tested.slackMs);
      expect((await its.look()).version).toBe(version);
      expect((await its.begin({ nonce: 'n' })).is).toBe('begun');
    });

    it('is set however many writes ended that never began', async () => {
      for (let n = 0; n <= MAX_MARKS; n++) await its.end(`never ${n}`, 'not_sent');
      expect((await its.begin()).is).toBe('begun');
    });

    it('is set once, however often it is asked for', async () => {
      expect((await its.begin({ nonce: 'n', purchase: 'p' })).is).toBe('begun');
      expect((await its.begin({ nonce: 'n', purchase: 'p' })).is).toBe('begun');
      await its.end('n', 'not_sent');
      expect(await its.look()).toBeDefined();
    });

    it('ends once, however often that is reported', async () => {
      await its.begin({ nonce: 'n' });
      await its.end('n', 'unknown', { markMs: 20_000 });
      await its.end('n', 'unknown', { markMs: 90_000 });
      await tested.pass(70_000 + tested.slackMs);
      expect(await its.look()).toBeDefined();
    });

    it('leaves new versions of everything where everything is dropped', async () => {
      const { version } = await its.keep('kept', { tags: ['other'] });
      await its.begin({ nonce: 'n' });
      await its.end('n', 'refused', { dropEverything: true });
      expect((await its.look({ tags: ['other'] })).version).not.toBe(version);
    });

    it('stays when versions are dropped, and with too many tags', async () => {
      await its.begin({ tags: ['t'] });
      await its.save({ version: 'any', askedAt: 0, copy: undefined, drop: 'everything' });
      await its.end(randomUUID(), 'done', { tags: tagsUpTo(MAX_TAGS + 1) });
      expect((await its.snapshot()).reply).toBeUndefined();
    });
  });

  it('renews all versions with too many tags, not before', async () => {
    const { version } = await its.keep('kept', { tags: ['x'] });
    await its.end(randomUUID(), 'done', { tags: tagsUpTo(MAX_TAGS) });
    expect(await its.look({ tags: ['x'] })).toMatchObject({ version, copy: {} });
    await its.end(randomUUID(), 'done', { tags: tagsUpTo(MAX_TAGS + 1) });
    expect((await its.look({ tags: ['x'] })).version).not.toBe(version);
  });

  it('takes no write with too many marks, until some have ended', async () => {
    const nonces = Array.from({ length: MAX_MARKS }, (_, i) => `n${i}`);
    for (const nonce of nonces) await its.begin({ nonce, tags: ['other'] });
    expect((await its.begin()).is).toBe('full');
    await its.end('n7', 'done', { tags: ['other'] });
    expect((await its.begin()).is).toBe('begun');
  });

  describe('a record', () => {
    it('is taken by one, and shown to the others', async () => {
      expect((await its.begin({ nonce: 'n', record: record() })).is).toBe('begun');
      const other = await its.begin({ record: record('r', 'other') });
      expect(other).toMatchObject({ is: 'record', value: valueOf('under way'), isOver: false });
      expect((await its.begin({ record: record('other') })).is).toBe('begun');
      expect((await its.begin({ nonce: 'n', record: record() })).is).toBe('begun');
    });

    it('is over when the time of its request has passed without its end', async () => {
      await its.begin({ nonce: 'n', busyMs: 10_000, record: record() });
      await tested.pass(10_000 + tested.slackMs);
      expect(await its.begin({ record: record() })).toMatchObject({ is: 'record', isOver: true });
    });

    it.each(['done', 'unknown'] as const)('is settled when its write is %s, and not over then', async (how) => {
      await its.begin({ nonce: 'n', record: record() });
      await its.end('n', how, { record: record('r', how) });
      await tested.pass(10_000 + tested.slackMs);
      const known = await its.begin({ record: record() });
      expect(known).toMatchObject({ is: 'record', value: valueOf(how), isOver: false });
    });

    it('is settled once more when an unknown outcome becomes known', async () => {
      await its.begin({ nonce: 'n', record: record() });
      await its.end('n', 'unknown', { record: record('r', 'unknown') });
      await its.end('n', 'done', { record: record('r', 'done') });
      expect(await its.begin({ record: record() })).toMatchObject({ value: valueOf('done') });
    });

    it.each(['refused', 'not_sent'] as const)('is free again when its write is %s', async (how) => {
      await its.begin({ nonce: 'n', record: record() });
      await its.end('n', how, { record: { key: 'r', lifeMs: 1 } });
      expect((await its.begin({ record: record() })).is).toBe('begun');
    });

    it.each(['done', 'unknown', 'refused', 'not_sent'] as const)('of another is left alone by %s', async (how) => {
      await its.begin({ nonce: 'n', record: record() });
      await its.end('m', how, { record: record('r', 'not mine') });
      expect(await its.begin({ record: record() })).toMatchObject({ value: valueOf('under way') });
    });

    it.each(['done', 'unknown'] as const)('that is missing is written by %s', async (how) => {
      await its.end('n', how, { record: record('r', how) });
      expect(await its.begin({ record: record() })).toMatchObject({ is: 'record', value: valueOf(how) });
    });

    it('is kept for its life', async () => {
      await its.begin({ nonce: 'n', record: record() });
      await its.end('n', 'done', { record: { ...record(), lifeMs: 600_000 } });
      await tested.pass(600_000 + tested.slackMs);
      expect((await its.begin({ record: record() })).is).toBe('begun');
    });

    it('is not taken where the write is refused for another reason', async () => {
      await its.begin({ purchase: 'p' });
      expect((await its.begin({ purchase: 'p', record: record() })).is).toBe('equal');
      await tested.engine.change(its.account, { cooldownMs: 5_000 });
      expect((await its.begin({ record: record() })).is).toBe('cooldown');
      await tested.pass(5_000 + tested.slackMs);
      expect((await its.begin({ record: record() })).is).toBe('begun');
    });

    it('is shown beside an equal purchase, and during a cooldown', async () => {
      await its.begin({ purchase: 'p', record: record() });
      await tested.engine.change(its.account, { cooldownMs: 5_000 });
      expect((await its.begin({ purchase: 'p', record: record() })).is).toBe('record');
    });
  });

  describe('a question about a key', () => {
    const question = {
      isQuestion: true,
      busyMs: 0,
      markMs: 0,
      tags: [],
      record: { ...record('r', ''), lifeMs: 0 },
    } as const;
    const asked = (more: Partial<WriteBegin> = {}) => its.begin({ ...question, ...more });

    it('that nobody has taken leaves it free, and changes nothing', async () => {
      const known = await its.keep('kept');
      for (let time = 0; time < 2; time++) expect(await asked()).toMatchObject({ is: 'free' });
      expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
      expect((await its.begin({ record: record() })).is).toBe('begun');
    });

    it('gets its record: under way, over, and as it was settled', async () => {
      await its.begin({ nonce: 'n', busyMs: 10_000, record: record() });
      expect(await asked()).toMatchObject({ is: 'record', value: valueOf('under way'), isOver: false });
      await tested.pass(10_000 + tested.slackMs);
      expect(await asked()).toMatchObject({ is: 'record', isOver: true });
      for (const how of ['unknown', 'done'] as const) {
        await its.end('n', how, { record: record('r', how) });
        expect(await asked()).toMatchObject({ is: 'record', value: valueOf(how), isOver: false });
      }
    });

    it.each(['refused', 'not_sent'] as const)('finds it free where its write was %s', async (how) => {
      await its.begin({ nonce: 'n', record: record() });
      await its.end('n', how, { record: { key: 'r', lifeMs: 1 } });
      expect(await asked()).toMatchObject({ is: 'free' });
    });

    it('is of one account', async () => {
      await asker(tested.engine).begin({ record: record() });
      expect(await asked()).toMatchObject({ is: 'free' });
    });

    it('is answered during a cooldown, beside a purchase, and with too many marks', async () => {
      for (let n = 0; n < MAX_MARKS; n++) await its.begin({ purchase: `p${n}` });
      await tested.engine.change(its.account, { cooldownMs: 5_000 });
      expect(await asked()).toMatchObject({ is: 'free' });
    });

    it('counts in the window, and is refused by it', async () => {
      const window = { name: 'requests', lengthMs: 60_000, limit: 1 };
      expect(await asked({ window })).toMatchObject({ is: 'free', use: { used: 1 } });
      expect(await asked({ window })).toMatchObject({ is: 'limit', use: { used: 2 } });
    });

    it('is refused by a session that is over', async () => {
      await its.begin({ record: record() });
      await tested.engine.change(its.account, { revoked: { id: 'one', lifeMs: 600_000 } });
      expect((await asked({ session: { id: 'one', epoch: 0 } })).is).toBe('revoked');
      expect((await asked({ session: { id: 'other', epoch: 0 } })).is).toBe('record');
    });
  });

  describe('a purchase', () => {
    it('without a key is refused beside any equal one, with a key beside those without', async () => {
      await its.begin({ nonce: 'n', purchase: 'p', record: record() });
      expect(await its.begin({ purchase: 'p' })).toMatchObject({ is: 'equal', standing: 'under_way' });
      expect((await its.begin({ purchase: 'p', record: record('other') })).is).toBe('begun');
      expect((await its.begin({ purchase: 'q' })).is).toBe('begun');
      expect((await its.begin({ purchase: 'q', record: record('third') })).is).toBe('equal');
    });

    it('is in the way no longer when it is done, refused or was not sent', async () => {
      for (const how of ['done', 'refused', 'not_sent'] as const) {
        await its.begin({ nonce: how, purchase: 'p' });
        await its.end(how, how, { purchase: 'p' });
        expect((await its.begin({ nonce: `after ${how}`, purchase: 'p' })).is).toBe('begun');
        await its.end(`after ${how}`, 'not_sent', { purchase: 'p' });
      }
    });

    it('is of unknown outcome when that is reported', async () => {
      await its.begin({ nonce: 'n', purchase: 'p' });
      await its.end('n', 'unknown', { purchase: 'p' });
      expect(await its.begin({ purchase: 'p' })).toMatchObject({ is: 'equal', standing: 'unknown' });
    });

    it('is of unknown outcome when its time has passed, and free when its mark has', async () => {
      await its.begin({ purchase: 'p', busyMs: 10_000, markMs: 70_000 });
      await tested.pass(10_000 + tested.slackMs);
      expect(await its.begin({ purchase: 'p' })).toMatchObject({ is: 'equal', standing: 'unknown' });
      await tested.pass(60_000);
      expect((await its.begin({ purchase: 'p' })).is).toBe('begun');
    });

    it('is made once by many at a time', async () => {
      const all = await Promise.all(Array.from({ length: 20 }, () => its.begin({ purchase: 'p' })));
      expect(all.filter(({ is }) => is === 'begun')).toHaveLength(1);
      expect(all.filter(({ is }) => is === 'equal')).toHaveLength(19);
    });
  });
}
