import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_COPIES, MAX_HELD_BYTES, MAX_VALUE_BYTES } from '../../src/store/shared/engine.ts';
import { type Asker, asker, COPY, type TestedEngine, valueOf } from './engine-asker.ts';

const LARGE = Buffer.alloc(MAX_VALUE_BYTES, 1);
/** So many large values are more than an account may hold. */
const TOO_MANY = Math.ceil(MAX_HELD_BYTES / MAX_VALUE_BYTES);
const DAY_MS = 86_400_000;

/** What is true of every engine about the room that one account may take. */
export function shareContract(current: () => { readonly tested: TestedEngine; readonly its: Asker }): void {
  let tested: TestedEngine;
  let its: Asker;
  let other: Asker;

  beforeEach(() => {
    ({ tested, its } = current());
    other = asker(tested.engine);
  });

  const copiesOf = async (count: number) => {
    let found = 0;
    for (let n = 0; n < count; n++) if ((await its.look({ key: `key ${n}` })).copy) found++;
    return found;
  };

  describe('the room of one account', () => {
    it('is a part of that for copies: with more it loses its own, and nobody else', async () => {
      await other.keep('of the other');
      const { version, askedAt } = await its.keep('first');
      const save = (n: number) =>
        its.save({ key: `key ${n}`, version, askedAt, copy: { ...COPY, value: LARGE, lifeMs: DAY_MS } });
      for (let n = 0; n < TOO_MANY; n++) expect(await save(n)).toBe('kept');
      expect((await its.look({ key: `key ${TOO_MANY - 1}` })).copy).toBeDefined();
      expect(await copiesOf(TOO_MANY)).toBeLessThan(TOO_MANY);
      expect((await other.look()).copy).toBeDefined();
    });

    it('takes one copy again and again', async () => {
      const { version, askedAt } = await its.keep('first', { key: 'small' });
      for (let n = 0; n < 2 * TOO_MANY; n++) await its.save({ version, askedAt, copy: { ...COPY, value: LARGE } });
      expect((await its.look({ key: 'small' })).copy).toBeDefined();
    });

    it('is given back by copies whose life is over', async () => {
      const { version, askedAt } = await its.keep('first', { key: 'stays' }, { lifeMs: 10 * COPY.lifeMs });
      const save = (n: number) => its.save({ key: `key ${n}`, version, askedAt, copy: { ...COPY, value: LARGE } });
      for (let n = 0; n < TOO_MANY - 2; n++) await save(n);
      await tested.pass(COPY.lifeMs + tested.slackMs);
      for (let n = 0; n < TOO_MANY - 2; n++) await save(n);
      expect(await copiesOf(TOO_MANY - 2)).toBe(TOO_MANY - 2);
      expect((await its.look({ key: 'stays' })).copy).toBeDefined();
    });

    it('has a bounded number of copies, however small', async () => {
      const { version, askedAt } = await its.keep('first');
      const copy = { ...COPY, value: valueOf('small') };
      for (let n = 0; n <= MAX_COPIES; n++) await its.save({ key: `key ${n}`, version, askedAt, copy });
      expect(await copiesOf(MAX_COPIES + 1)).toBeLessThanOrEqual(MAX_COPIES);
    });

    it('is a part of that for records: with more it takes no further key, and others do', async () => {
      const record = (key: string, value = LARGE) => ({ key, value, lifeMs: DAY_MS });
      const settle = async (n: number) => {
        await its.begin({ nonce: `n${n}`, record: record(`${n}`, valueOf('under way')) });
        await its.end(`n${n}`, 'done', { record: record(`${n}`) });
      };
      for (let n = 0; n < TOO_MANY; n++) await settle(n);
      expect((await its.begin({ record: record('more', valueOf('small')) })).is).toBe('full');
      expect((await its.begin()).is).toBe('begun');
      expect(await its.begin({ record: record('0') })).toMatchObject({ is: 'record' });
      expect((await other.begin({ record: record('more', valueOf('small')) })).is).toBe('begun');
      await tested.pass(DAY_MS + 3_600_000);
      expect((await its.begin({ record: record('more', valueOf('small')) })).is).toBe('begun');
    });

    it('is given back by keys that are free again', async () => {
      const record = { key: 'r', value: LARGE, lifeMs: DAY_MS };
      for (const how of ['refused', 'not_sent'] as const)
        for (let n = 0; n < TOO_MANY; n++) {
          expect((await its.begin({ nonce: `${how}-${n}`, record })).is).toBe('begun');
          await its.end(`${how}-${n}`, how, { record: { key: 'r', lifeMs: 1 } });
        }
      expect((await its.begin({ record })).is).toBe('begun');
    });
  });
}
