import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { SESSION_MS, MAX_REVOKED } from '../../src/store/store.ts';
import { type Asker, asker, COPY, type TestedEngine, valueOf } from './engine-asker.ts';

const LIFE_MS = 600_000;
const OPEN = { isRevoked: false, epoch: 0 };

/** What is true of sessions in every engine. */
export function sessionContract(current: () => { readonly tested: TestedEngine; readonly its: Asker }): void {
  let tested: TestedEngine;
  let its: Asker;

  beforeEach(() => {
    ({ tested, its } = current());
  });

  const stateOf = async (session: string, account = its.account, sessionEpoch?: number) =>
    (await tested.engine.snapshot(account, { session, sessionEpoch, keys: [] })).session;
  const revoke = (id: string, lifeMs = LIFE_MS) => tested.engine.change(its.account, { revoked: { id, lifeMs } });
  const revokeAll = (epoch: number, lifeMs = LIFE_MS) =>
    tested.engine.change(its.account, { revoked: { epoch, lifeMs } });

  describe('a session', () => {
    it('is not revoked until it is, and is told of only where it is asked for', async () => {
      expect(await stateOf('one')).toMatchObject(OPEN);
      await revoke('one');
      expect(await stateOf('one')).toMatchObject({ isRevoked: true, epoch: 0 });
      expect((await tested.engine.snapshot(its.account, { keys: [] })).session).toBeUndefined();
    });

    it('is revoked alone, and twice as well as once', async () => {
      await revoke('one');
      await revoke('one');
      expect(await stateOf('other')).toMatchObject(OPEN);
      expect(await stateOf('one', asker(tested.engine).account)).toMatchObject(OPEN);
    });

    it('comes with what else is asked for', async () => {
      await revoke('one');
      const known = await its.keep('kept');
      const window = { name: 'minute', lengthMs: 60_000, limit: 5 };
      const keys = [{ key: 'k', tags: ['t'] }];
      const reply = await tested.engine.snapshot(its.account, { session: 'one', window, keys });
      expect(reply).toMatchObject({ session: { isRevoked: true }, use: { used: 1 } });
      expect(reply.keys[0]).toMatchObject({ version: known.version, copy: { value: valueOf('kept') } });
    });

    it('is known to be revoked when the limit is used up too', async () => {
      await revoke('one');
      const window = { name: 'minute', lengthMs: 60_000, limit: 0 };
      const { session } = await tested.engine.snapshot(its.account, { session: 'one', window, keys: [] });
      expect(session).toMatchObject({ isRevoked: true });
    });

    it('stays revoked for the time that was said, whatever else of the account ends', async () => {
      await revoke('one');
      await its.keep('kept');
      await its.save({ version: 'any', askedAt: 0, copy: undefined, drop: 'everything' });
      await tested.pass(LIFE_MS - tested.slackMs);
      expect(COPY.lifeMs).toBeLessThan(LIFE_MS);
      expect(await stateOf('one')).toMatchObject({ isRevoked: true });
    });

    it('is forgotten after that', async () => {
      await revoke('one');
      await revokeAll(1);
      await tested.pass(LIFE_MS + tested.slackMs);
      expect(await stateOf('one')).toMatchObject(OPEN);
    });

    it('that was revoked earlier is not forgotten with a later one of a shorter life', async () => {
      await revoke('one');
      await revoke('other', 1_000);
      await tested.pass(LIFE_MS / 2);
      await revoke('third', 1_000);
      expect(await stateOf('one')).toMatchObject({ isRevoked: true });
    });
  });

  describe('the epoch of sessions', () => {
    it('is the highest one that was set, in any order, for this account alone', async () => {
      await revokeAll(2);
      await revoke('one');
      await revokeAll(1);
      expect(await stateOf('one')).toMatchObject({ isRevoked: true, epoch: 2 });
      await revokeAll(3);
      await revokeAll(2);
      expect(await stateOf('other')).toMatchObject({ isRevoked: false, epoch: 3 });
      expect(await stateOf('one', asker(tested.engine).account)).toMatchObject(OPEN);
    });

    it('is at least that of any session that is asked for, or that writes', async () => {
      await revokeAll(1);
      expect(await stateOf('one', its.account, 3)).toMatchObject({ isRevoked: false, epoch: 3 });
      expect(await stateOf('other', its.account, 2)).toMatchObject({ isRevoked: false, epoch: 3 });
      expect((await its.begin({ session: { id: 'third', epoch: 4 } })).is).toBe('begun');
      expect((await its.begin({ session: { id: 'one', epoch: 3 } })).is).toBe('revoked');
      expect(await stateOf('other')).toMatchObject({ isRevoked: false, epoch: 4 });
    });

    it('comes with a session that is revoked too', async () => {
      await tested.engine.change(its.account, { revoked: { id: 'one', epoch: 2, lifeMs: LIFE_MS } });
      expect(await stateOf('one')).toMatchObject({ isRevoked: true, epoch: 2 });
    });

    it('is kept while sessions are used, each of which may last for 30 days', async () => {
      await revokeAll(1, SESSION_MS);
      for (let week = 0; week < 6; week++) {
        await tested.pass(SESSION_MS / 4);
        expect(await stateOf('one')).toMatchObject({ epoch: 1 });
      }
      await tested.pass(SESSION_MS + tested.slackMs);
      expect(await stateOf('one')).toMatchObject(OPEN);
    });

    it('does not change the versions of copies', async () => {
      const known = await its.keep('kept');
      await revoke('one');
      await revokeAll(1);
      expect(await its.look()).toMatchObject({ version: known.version, copy: { askedAt: known.askedAt } });
    });

    it(`is a higher one after more than ${MAX_REVOKED} sessions, and stays while few more are revoked`, async () => {
      for (let n = 0; n < MAX_REVOKED; n++) await revoke(`session ${n}`);
      await revoke('session 0'); // it is known
      expect(await stateOf('session 0')).toMatchObject({ isRevoked: true, epoch: 0 });
      await revoke('one more');
      expect(await stateOf('new')).toMatchObject({ isRevoked: false, epoch: 1 });
      await revoke('another');
      expect(await stateOf('another')).toMatchObject({ isRevoked: true, epoch: 1 });
      expect(await stateOf('new')).toMatchObject({ isRevoked: false, epoch: 1 });
    });

    it('does not end with sessions that have', async () => {
      for (let n = 0; n < MAX_REVOKED; n++) await revoke(`session ${n}`, 1_000);
      await tested.pass(1_000 + tested.slackMs);
      await revoke('one more');
      expect(await stateOf('new')).toMatchObject(OPEN);
    });
  });

  describe('a write by cookie', () => {
    const record = { key: 'r', value: valueOf('under way'), lifeMs: LIFE_MS };

    it('begins with a session that goes on', async () => {
      expect((await its.begin({ session: { id: 'one', epoch: 0 } })).is).toBe('begun');
      await revokeAll(1);
      expect((await its.begin({ session: { id: 'one', epoch: 1 } })).is).toBe('begun');
    });

    it('does not begin with one that is revoked, and leaves nothing behind', async () => {
      await revoke('one');
      const nonce = randomUUID();
      const session = { id: 'one', epoch: 0 };
      expect((await its.begin({ nonce, session, record, purchase: 'p' })).is).toBe('revoked');
      expect((await its.snapshot()).reply).toBeDefined(); // no mark
      expect((await its.begin({ record, purchase: 'p' })).is).toBe('begun');
    });

    it('does not begin with one of a lower epoch', async () => {
      await revokeAll(2);
      for (const epoch of [0, 1]) {
        const begun = await its.begin({ session: { id: 'one', epoch }, record });
        expect(begun.is).toBe('revoked');
      }
      expect((await its.begin({ record })).is).toBe('begun'); // by header
    });

    it('is told that before it is told of an earlier answer, and is counted', async () => {
      const window = { name: 'minute', lengthMs: 60_000, limit: 1 };
      const session = { id: 'one', epoch: 0 };
      await its.begin({ nonce: 'n', record, session });
      await its.end('n', 'done', { record: { ...record, value: valueOf('answer') } });
      expect((await its.begin({ record, session })).is).toBe('record');
      await revoke('one');
      expect(await its.begin({ record, session, window })).toMatchObject({ is: 'revoked', use: { used: 1 } });
      expect(await its.begin({ record, session, window })).toMatchObject({ is: 'limit', use: { used: 2 } });
    });
  });
}
