import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { isSessionOver, type Revoked, type SessionId, SESSION_MS, MAX_REVOKED } from '../../src/store/store.ts';
import { START_MS } from '../support/clock.ts';

/** As many as a process keeps. */
const MOST = 100_000;

/** A store of one process, as a gateway asks it about sessions. */
function sessionsOf() {
  const store = new MemoryStore({ maxBytes: 1_048_576 });
  let now = START_MS;
  let others = 0;
  const requestOf = (account: string) => ({
    account,
    owner: account,
    now,
    window: undefined,
    waitUntil: () => undefined,
  });
  const isOver = async (account: string, session: SessionId) =>
    isSessionOver(session, store.snapshot({ ...requestOf(account), session }).session);
  return {
    isOver,
    pass: (ms: number) => void (now += ms),
    begin: async (account: string): Promise<SessionId> => {
      const session = { id: crypto.randomUUID(), epoch: 0 };
      const { session: state } = store.snapshot({ ...requestOf(account), session });
      return { ...session, epoch: state?.epoch ?? 0 };
    },
    signOut: async (account: string, session: Revoked) => store.revoke(requestOf(account), session),
    /** Sign-outs of others, of so many accounts. */
    signOutOthers: async (count: number, accounts: number) => {
      for (const end = others + count; others < end; others++)
        await store.revoke(requestOf(`other ${others % accounts}`), { id: `session ${others}`, epoch: 0 });
    },
  };
}

describe('sign-outs that one process keeps', () => {
  test.for([1, MAX_REVOKED + 1, 1_000, MOST])(
    'hold however many follow of %i others, while the session could live',
    async (accounts) => {
      const { begin, signOut, signOutOthers, isOver, pass } = sessionsOf();
      const session = await begin('account');
      await signOut('account', session);
      for (let part = 0; part < 3; part++) {
        pass(SESSION_MS / 4);
        await signOutOthers(MOST / 2 + 1, accounts);
        expect(await isOver('account', session)).toBe(true);
      }
    },
  );

  test.for([MAX_REVOKED, 10])(
    'of accounts with %i each, more than there is room for, end no others’ sessions',
    async (each) => {
      const { begin, signOut, signOutOthers, isOver } = sessionsOf();
      const [signedOut, session] = [await begin('account'), await begin('account')];
      await signOut('account', signedOut);
      for (let time = 0; time < 3; time++) await signOutOthers(MOST, Math.ceil(MOST / each));
      expect([await isOver('account', signedOut), await isOver('account', session)]).toEqual([true, false]);
      expect(await isOver('other 0', { id: 'session', epoch: 0 })).toBe(true);
      expect(await isOver('other 0', await begin('other 0'))).toBe(false);
    },
  );

  test('of more accounts than there is room for end every session of before, and none that begins then', async () => {
    const { begin, signOutOthers, isOver } = sessionsOf();
    const [before, same] = [await begin('account'), await begin('account')];
    await signOutOthers(MOST - 2_000, 1_000);
    expect(await isOver('account', before)).toBe(false);
    await signOutOthers(MOST, MOST);
    for (const session of [before, same]) expect(await isOver('account', session)).toBe(true);
    for (const account of ['account', 'another']) expect(await isOver(account, await begin(account))).toBe(false);
  });

  test('are dropped first where their session has ended by itself', async () => {
    const { begin, signOut, signOutOthers, isOver, pass } = sessionsOf();
    await signOutOthers(MOST - 2_000, 1_000);
    pass(SESSION_MS / 2);
    const [signedOut, session] = [await begin('account'), await begin('account')];
    await signOut('account', signedOut);
    pass(SESSION_MS / 2 + 1);
    await signOutOthers(MOST - 2_000, 1_000);
    expect([await isOver('account', signedOut), await isOver('account', session)]).toEqual([true, false]);
  });

  test(`that are more than ${MAX_REVOKED} of one account end all of its sessions, and of no other`, async () => {
    const { begin, signOut, isOver } = sessionsOf();
    const [session, other] = [await begin('account'), await begin('other')];
    for (let n = 0; n < MAX_REVOKED; n++) await signOut('account', await begin('account'));
    expect(await isOver('account', session)).toBe(false);
    const last = await begin('account');
    await signOut('account', last);
    const after = await begin('account');
    const all = [isOver('account', session), isOver('account', last), isOver('other', other), isOver('account', after)];
    expect(await Promise.all(all)).toEqual([true, true, false, false]);
  });

  test('do not count any more where all sessions of their time are over', async () => {
    const { begin, signOut, isOver } = sessionsOf();
    for (let n = 0; n < MAX_REVOKED; n++) await signOut('account', await begin('account'));
    const before = await begin('account');
    await signOut('account', { epoch: before.epoch + 1 });
    const session = await begin('account');
    for (let n = 1; n < MAX_REVOKED; n++) await signOut('account', await begin('account'));
    expect([await isOver('account', before), await isOver('account', session)]).toEqual([true, false]);
  });
});
