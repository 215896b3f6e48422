import { expect, test, vi } from 'vitest';
import type { Engine } from '../../src/store/shared/engine.ts';
import { SESSION_MS } from '../../src/store/store.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { objectEngine } from '../support/object-storage.ts';
import { sharedStore } from './shared-world.ts';

const ACCOUNTS = ['one', 'another', 'third'];
const SESSIONS = 50;

/** An engine that becomes another one. */
function replaceable() {
  let current = objectEngine();
  let listener: (() => void) | undefined;
  let [underWay, most, reports] = [0, 0, 0];
  const refused = new Set<string>();
  const engine: Engine = {
    ...current,
    async change(account, change) {
      if (refused.has(account)) throw new Error('refused');
      reports++;
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      await current.change(account, change);
      underWay--;
    },
    onAnother: (called) => void (listener = called),
  };
  return {
    engine,
    /** Empty, noticed so many times; from now on reports are counted. */
    replace: (times: number): void => {
      current = objectEngine();
      [most, reports] = [0, 0];
      for (let n = 0; n < times; n++) listener?.();
    },
    stateOf: async (account: string, session: string) =>
      (await current.snapshot(account, { session, keys: [] })).session,
    seen: () => ({ most, reports }),
    /** Accounts whose part of the store is away. */
    refused,
  };
}

const requestsOf = (clock: { now(): number }) => (account: string) => ({
  account,
  owner: account,
  now: clock.now(),
  waitUntil: () => undefined,
});

test('another store is told of all sign-outs once, one after the other, however often it is noticed meanwhile', async () => {
  const { engine, replace, stateOf, seen } = replaceable();
  const clock = clockOfDeadlines();
  const store = sharedStore({ engine, clock });
  const requestOf = requestsOf(clock);
  for (const account of ACCOUNTS)
    for (let n = 0; n < SESSIONS; n++) await store.revoke(requestOf(account), { id: `session ${n}`, epoch: 0 });
  await store.revoke(requestOf('everywhere'), { epoch: 3 });

  const all = ACCOUNTS.length * SESSIONS + 1;
  replace(1);
  await vi.waitFor(() => expect(seen().reports).toBe(all));
  await vi.waitFor(() => expect(store.pending).toBe(0));
  expect(seen()).toEqual({ most: 1, reports: all });
  for (const account of ACCOUNTS)
    for (let n = 0; n < SESSIONS; n++)
      expect(await stateOf(account, `session ${n}`)).toEqual({ isRevoked: true, epoch: 0 });
  expect(await stateOf('everywhere', 'any')).toEqual({ isRevoked: false, epoch: 3 });

  replace(9);
  await vi.waitFor(() => expect(seen().reports).toBe(2 * all)); // what is noticed after the first was begun is another one
  await vi.waitFor(() => expect(store.pending).toBe(0));
  expect(seen()).toEqual({ most: 1, reports: 2 * all });

  clock.advance(SESSION_MS); // all of these have ended by themselves
  await store.revoke(requestOf('one'), { id: 'new', epoch: 0 });
  replace(1);
  await vi.waitFor(async () => expect(await stateOf('one', 'new')).toMatchObject({ isRevoked: true }));
  await vi.waitFor(() => expect(store.pending).toBe(0));
  expect(seen().reports).toBe(1);
});

test('a sign-out that no try has reported in ten minutes is reported when the store answers again', async () => {
  const { engine, stateOf, refused } = replaceable();
  const clock = clockOfDeadlines();
  const store = sharedStore({ engine, clock });
  refused.add('one');
  const reported = store.revoke(requestsOf(clock)('one'), { id: 'session', epoch: 0 });
  for (let n = 0; n < 700; n++) {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await reported).toBe(false);
  expect(await stateOf('one', 'session')).toMatchObject({ isRevoked: false });
  refused.delete('one');
  await vi.waitFor(async () => {
    clock.advance(1_000);
    expect(await stateOf('one', 'session')).toMatchObject({ isRevoked: true });
  });
  await vi.waitFor(() => expect(store.pending).toBe(0));
});

test('another store, a part of which is away, is told of what belongs to the rest', async () => {
  const { engine, replace, stateOf, refused } = replaceable();
  const clock = clockOfDeadlines();
  const store = sharedStore({ engine, clock });
  for (const account of ACCOUNTS) await store.revoke(requestsOf(clock)(account), { id: 'session', epoch: 0 });
  const expectKnown = (accounts: readonly string[]) =>
    vi.waitFor(async () => {
      clock.advance(1_000);
      for (const account of accounts) expect(await stateOf(account, 'session')).toMatchObject({ isRevoked: true });
    });
  for (const away of ACCOUNTS) {
    refused.add(away);
    replace(1);
    await expectKnown(ACCOUNTS.filter((account) => account !== away));
    refused.delete(away);
    await expectKnown(ACCOUNTS);
  }
});
