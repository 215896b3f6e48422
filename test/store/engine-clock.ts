import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Asker, COPY, type TestedEngine, valueOf } from './engine-asker.ts';

const BACK_MS = 600_000;

/** What is true of every engine whose clock is set back by ten minutes. */
export function clockContract(current: () => { readonly tested: TestedEngine; readonly its: Asker }): void {
  let tested: TestedEngine;
  let its: Asker;

  beforeEach(() => {
    ({ tested, its } = current());
  });

  const setBack = () => tested.pass(-BACK_MS);
  const window = { name: 'minute', lengthMs: 60_000, limit: 2 };

  describe('a clock that was set back', () => {
    // In the time of those that come later nothing is from later than now.
    afterEach(() => tested.pass(BACK_MS));

    it('leaves no copy from later than now, not when it is that late again either', async () => {
      await its.keep('kept');
      await setBack();
      expect((await its.look()).copy).toBeUndefined();
      await tested.pass(BACK_MS);
      expect((await its.look()).copy).toBeUndefined();
    });

    it('lets a copy be kept in the place of one from later than now', async () => {
      const { version } = await its.keep('kept');
      await setBack();
      const { now: askedAt } = await its.snapshot({ key: 'another' });
      expect(await its.save({ version, askedAt, copy: { value: valueOf('new'), ...COPY } })).toBe('kept');
      expect((await its.look()).copy?.value?.toString()).toBe(valueOf('new').toString());
    });

    it('lets no answer be kept that was asked for before, so that later ones are', async () => {
      const version = await its.version('t');
      await setBack();
      const { now: askedAt } = await its.snapshot();
      expect(await its.save({ version, askedAt: askedAt + BACK_MS })).toBe('void');
      expect((await its.look()).copy).toBeUndefined();
      expect(await its.save({ version, askedAt })).toBe('kept');
    });

    it('begins windows anew', async () => {
      const ask = () => tested.engine.snapshot(its.account, { window, keys: [] });
      for (let n = 0; n < 5; n++) await ask();
      await setBack();
      const after = await ask();
      expect(after.use?.used).toBe(1);
      expect(after.use?.leftMs).toBeLessThanOrEqual(window.lengthMs);
    });

    it('ends a cooldown', async () => {
      await tested.engine.change(its.account, { cooldownMs: 20_000 });
      await setBack();
      expect((await tested.engine.snapshot(its.account, { keys: [] })).cooldownMs).toBe(0);
      expect((await its.begin()).is).toBe('begun');
    });

    it('ends a lease', async () => {
      await its.look({ lease: 'one' });
      await setBack();
      expect((await its.look({ lease: 'two' })).lease).toBe('two');
    });

    it('leaves a mark, for its whole time and no longer', async () => {
      await its.begin({ nonce: 'n', markMs: 70_000 });
      await setBack();
      expect((await its.snapshot()).reply).toBeUndefined();
      await tested.pass(70_000 - tested.slackMs - 1);
      expect((await its.snapshot()).reply).toBeUndefined();
      await tested.pass(2 * tested.slackMs + 1);
      expect(await its.look()).toBeDefined();
    });

    it('leaves a purchase and a key under way for the time of their request and no longer', async () => {
      const record = { key: 'r', value: valueOf('under way'), lifeMs: 3_600_000 };
      await its.begin({ purchase: 'p', record, busyMs: 10_000 });
      await setBack();
      expect(await its.begin({ purchase: 'p' })).toMatchObject({ standing: 'under_way' });
      expect(await its.begin({ record })).toMatchObject({ is: 'record', isOver: false });
      await tested.pass(10_000 + tested.slackMs);
      expect(await its.begin({ purchase: 'p' })).toMatchObject({ standing: 'unknown' });
      expect(await its.begin({ record })).toMatchObject({ is: 'record', isOver: true });
    });
  });
}
