import { beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/runtime.ts';
import {
  type CacheKey,
  type Entry,
  EVERYTHING,
  type Found,
  type NewWrite,
  type Saved,
  type SessionId,
  type Tag,
  type WriteEnd,
} from '../../src/store/port.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';
import type { Store } from '../../src/store/store.ts';
import { unique } from '../support/secrets.ts';

/** A store under test. */
export interface Tested {
  /** Two instances; where the store is one process, both are it. */
  readonly instances: readonly [Store, Store];
  /** By which instances tell instants. */
  readonly clock: Pick<Clock, 'now'>;
  /** Moves the time of instances and store. */
  readonly pass: (ms: number) => void | Promise<void>;
}

/** A cache key, and whose it is. */
export interface OwnKey extends CacheKey {
  readonly account: string;
}

/** An account that no other test has used: a store may outlive a test. */
export const newAccount = (): string => `account-${unique()}`;

const DAY_MS = 86_400_000;
export const ANSWER = { status: 200, text: '{}', at: 5 };

let nonces = 0;

/** A write that is announced at `now`. */
export const writeOf = (changes: Partial<NewWrite> = {}): NewWrite => {
  const { now = 0 } = changes;
  return {
    account: 'account',
    window: undefined,
    tags: ['group'],
    hasCopies: true,
    nonce: `nonce ${++nonces}`,
    now,
    endsAt: now + 10_000,
    until: now + 70_000,
    key: undefined,
    keyMs: DAY_MS,
    fingerprint: 'body',
    isPurchase: false,
    session: undefined,
    waitUntil: () => undefined,
    ...changes,
  };
};

const waitUntil = () => undefined;

const look = async (store: Store, key: OwnKey): Promise<Snapshot> =>
  store.snapshot({ account: key.account, window: undefined, keys: [key], waitUntil });

/** What a new request finds. */
export const find = async (store: Store, key: OwnKey): Promise<Found> => (await look(store, key)).lookup(key);

export const heldIn = async (store: Store, key: OwnKey): Promise<string | undefined> =>
  (await find(store, key)).entry?.text;

const TAGS = ['subusers', 'subusers/5'] as const;

export const keyIn = (account: string, key = 'getSubuser/5?', tags: readonly Tag[] = TAGS): OwnKey => ({
  account,
  key,
  tags,
  freshMs: 30_000,
  lifeMs: 600_000,
});

/** What invalidates a copy with `TAGS`, and what does not. */
const INVALIDATIONS: readonly (readonly [string, readonly Tag[], boolean])[] = [
  ['its group', ['subusers'], true],
  ['its item', ['subusers/5'], true],
  ['everything', [EVERYTHING], true],
  ['one of its tags among others', ['transactions', 'subusers/5'], true],
  ['another item', ['subusers/6'], false],
  ['an item that begins alike', ['subusers/50'], false],
  ['a group that begins alike', ['subuser'], false],
  ['a name that JavaScript has for itself', ['__proto__', 'constructor'], false],
];

const EMPTY = { links: [], etag: '', validators: {} };

const drop = async (store: Store, of: OwnKey, what: 'key' | 'everything') => {
  const snapshot = await look(store, of);
  await snapshot.save(of, await snapshot.lookup(of), { drop: what });
};

/** What is true of every store. */
export function storeContract(name: string, open: () => Promise<Tested> | Tested): void {
  describe(name, () => {
    let tested: Tested;
    let one: Store;
    let other: Store;
    let account: string;
    let key: OwnKey;

    beforeEach(async () => {
      tested = await open();
      [one, other] = tested.instances;
      account = newAccount();
      key = keyIn(account);
    });

    const entryOf = (text: string, now = tested.clock.now()): Entry => ({
      ...EMPTY,
      text,
      storedAt: now,
      storedWall: now,
    });
    /** Ends a fetch that a request has begun, when all that is behind it is done. */
    const save = async (store: Store, of: OwnKey, found: Found, text: string): Promise<Saved> => {
      const behind: Promise<unknown>[] = [];
      const later = (work: Promise<unknown>) => void behind.push(work);
      const snapshot = await store.snapshot({ account: of.account, window: undefined, keys: [of], waitUntil: later });
      const saved = await snapshot.save(of, found, { entry: entryOf(text) });
      await Promise.all(behind);
      return saved;
    };
    /** A read from its beginning to its end. */
    const keep = async (store: Store, of: OwnKey, text: string) =>
      (await save(store, of, await find(store, of), text)).stored;
    const begin = async (store: Store, changes: Partial<NewWrite>) => {
      const write = writeOf({ account, now: tested.clock.now(), ...changes });
      return { begun: await store.beginWrite(write), end: (how: WriteEnd) => store.endWrite(write, how) };
    };
    const invalidate = async (store: Store, tags: readonly Tag[]) => (await begin(store, { tags })).end(ANSWER);
    const asked = async (store: Store, of = 'key') =>
      (await store.outcomeOf({ account, window: undefined, key: of, waitUntil })).record?.outcome;

    /** What both instances say. */
    const isOver = async (session: SessionId) => {
      const ask = (store: Store) => store.snapshot({ account, window: undefined, session, waitUntil });
      const [first, second] = [(await ask(one)).session, (await ask(other)).session];
      expect(second).toEqual(first);
      return first?.isOver;
    };
    const signOut = (session: SessionId, which: 'one' | 'all' = 'one') =>
      one.revoke({ account, waitUntil }, session, which);
    const sessionOf = async (id: string) => ({ id, epoch: (await one.epochOf(account)) ?? NaN });

    describe('a copy', () => {
      test('is there for every instance, value for value', async () => {
        const text = '{"x":9007199254740993123,"é":"\u{1f600}\u2028","y":25.0}';
        expect(await heldIn(other, key)).toBeUndefined();
        expect(await keep(one, key, text)).toBe(true);
        expect([await heldIn(one, key), await heldIn(other, key)]).toEqual([text, text]);
      });

      test('is not replaced by an answer that was asked for earlier', async () => {
        const earlier = await find(one, key);
        await tested.pass(5);
        const later = await find(other, key);
        expect(later.askedAt).toBeGreaterThan(earlier.askedAt);
        expect((await save(other, key, later, '"later"')).stored).toBe(true);
        await heldIn(one, key);
        expect((await save(one, key, earlier, '"earlier"')).stored).toBe(false);
        expect([await heldIn(one, key), await heldIn(other, key)]).toEqual(['"later"', '"later"']);
      });

      test('is of one key of one account', async () => {
        const keys = ['a/1?', 'a/1?x', 'a/1?x=1', 'a/1?x=1&', 'a/?1', 'A/1?', 'a/1? ', 'a/1?:', 'a/1?*', 'a/1?é'];
        const all = [account, newAccount()].flatMap((whose) => keys.map((text) => keyIn(whose, text)));
        for (const each of all) await keep(one, each, `"${each.account} ${each.key}"`);
        for (const each of all) expect(await heldIn(one, each)).toBe(`"${each.account} ${each.key}"`);
      });

      test('that is dropped is gone everywhere, and so is what was asked for before', async () => {
        const beside = keyIn(account, 'getSubuser/5?plan_id=1');
        const before = await find(other, key);
        await keep(one, key, '"gone"');
        await keep(one, beside, '"kept"');
        await drop(one, key, 'key');
        expect((await save(other, key, before, '"late"')).stored).toBe(false);
        expect([await heldIn(one, key), await heldIn(other, key)]).toEqual([undefined, undefined]);
        expect([await heldIn(one, beside), await heldIn(other, beside)]).toEqual(['"kept"', '"kept"']);
        expect(await keep(one, key, '"again"')).toBe(true);
      });
    });

    test('nothing of a credential that was refused is given, also what another instance was asking for meanwhile', async () => {
      const theirs = keyIn(newAccount());
      await keep(one, theirs, '"kept"');
      const [first, second] = [await find(one, key), await find(other, key)];
      await drop(one, key, 'everything');
      await save(other, key, second, '"late"');
      expect([await heldIn(other, key), await heldIn(one, key)]).toEqual([undefined, undefined]);
      expect((await save(one, key, first, '"late"')).stored).toBe(false);
      expect(await heldIn(other, theirs)).toBe('"kept"');
      await tested.pass(130_000);
      expect([await heldIn(other, key), await heldIn(one, key)]).toEqual([undefined, undefined]);
    });

    test('an answer that took longer than a minute is not kept', async () => {
      const found = await find(one, key);
      await tested.pass(60_001);
      expect((await save(one, key, found, '"late"')).stored).toBe(false);
    });

    test('a copy that is too large for other instances is void with the rest', async () => {
      await keep(one, key, JSON.stringify('x'.repeat(40_000)));
      await drop(other, key, 'everything');
      await tested.pass(130_000);
      expect(await heldIn(one, key)).toBeUndefined();
    });

    describe.each(INVALIDATIONS)('a write that touches %s', (_, tags, isTouched) => {
      test(isTouched ? 'ends a copy of every instance' : 'leaves a copy alone', async () => {
        await keep(one, key, '"copy"');
        expect(await heldIn(other, key)).toBe('"copy"');
        await invalidate(one, tags);
        const held = isTouched ? undefined : '"copy"';
        expect([await heldIn(one, key), await heldIn(other, key)]).toEqual([held, held]);
      });

      test(isTouched ? 'voids a read from before it' : 'does not void a read from before it', async () => {
        const found = await find(other, key);
        await invalidate(one, tags);
        await find(other, key); // without having looked again, an instance keeps it under a version that nobody asks for
        expect((await save(other, key, found, '"copy"')).stored).toBe(!isTouched);
        expect(await heldIn(one, key)).toBe(isTouched ? undefined : '"copy"');
      });
    });

    test('it stays right however many tags an account has written', async () => {
      await keep(one, key, '"copy"');
      await invalidate(one, ['subusers/5']);
      const between = await find(one, key);
      for (let id = 1000; id < 1200; id++) await invalidate(one, [`subusers/${id}`]);
      expect((await save(one, key, between, '"late"')).stored).toBe(false);
      expect(await keep(other, key, '"after"')).toBe(true);
      expect(await heldIn(one, key)).toBe('"after"');
    });

    describe('a write under way', () => {
      test('hides what it touches from every instance, and nothing of it is kept', async () => {
        await keep(one, key, '"copy"');
        const before = await find(other, key);
        const { end } = await begin(one, { tags: ['subusers/5'] });
        for (const store of [one, other]) expect(await find(store, key)).toMatchObject({ isHidden: true });
        expect((await save(other, key, before, '"late"')).stored).toBe(false);
        await end(ANSWER);
        expect(await heldIn(other, key)).toBeUndefined();
      });

      test('is one of two: each ends for itself', async () => {
        const first = await begin(one, { tags: ['subusers'] });
        const second = await begin(other, { tags: ['subusers/5'] });
        await first.end(ANSWER);
        expect(await find(other, key)).toMatchObject({ isHidden: true });
        await second.end(ANSWER);
        expect((await find(other, key)).isHidden).toBeUndefined();
      });

      test('that was not sent leaves the copies as they were', async () => {
        await keep(one, key, '"copy"');
        await (await begin(one, { tags: ['subusers'] })).end('not_sent');
        expect([await heldIn(one, key), await heldIn(other, key)]).toEqual(['"copy"', '"copy"']);
      });

      test('that a refusal of the credential ends leaves no copy of the account', async () => {
        const elsewhere = keyIn(account, 'getSubscription/?', ['subscription']);
        await keep(one, elsewhere, '"gone"');
        await (await begin(one, { tags: ['subusers'] })).end('credential_refused');
        expect([await heldIn(one, elsewhere), await heldIn(other, elsewhere)]).toEqual([undefined, undefined]);
      });

      test('of unknown outcome hides what it touches for as long as it was told', async () => {
        await keep(one, key, '"copy"');
        await (await begin(one, { tags: ['subusers'] })).end('unknown');
        expect(await find(other, key)).toMatchObject({ isHidden: true });
        await tested.pass(70_001);
        expect(await heldIn(other, key)).toBeUndefined();
        expect(await keep(other, key, '"after"')).toBe(true);
        expect(await heldIn(other, key)).toBe('"after"');
      });

      test('of an instance that was killed leaves no older copy, also where another write takes its mark away', async () => {
        await keep(one, key, '"copy"');
        await begin(one, { tags: ['subusers'] });
        await tested.pass(70_001);
        await invalidate(other, ['subscription']);
        expect([await heldIn(one, key), await heldIn(other, key)]).toEqual([undefined, undefined]);
      });
    });

    describe('a key', () => {
      test('is under way everywhere, then has the answer and when it came', async () => {
        const { end } = await begin(one, { key: 'key' });
        expect([await asked(one), await asked(other)]).toEqual(['under_way', 'under_way']);
        const record = async () => (await begin(other, { key: 'key' })).begun.record;
        expect(await record()).toEqual({ fingerprint: 'body', outcome: 'under_way' });
        await end(ANSWER);
        expect([await asked(one), await asked(other)]).toEqual([ANSWER, ANSWER]);
        expect(await record()).toEqual({ fingerprint: 'body', outcome: ANSWER });
      });

      test('of unknown outcome is never free', async () => {
        const { end } = await begin(one, { key: 'key' });
        await end('unknown');
        expect((await begin(other, { key: 'key' })).begun.record).toMatchObject({ outcome: 'unknown' });
        await tested.pass(3_600_000);
        expect(await asked(other)).toBe('unknown');
      });

      test.each(['refused', 'credential_refused', 'not_sent'] as const)('is free where it was %s', async (how) => {
        await (await begin(one, { key: 'key' })).end(how);
        expect(await asked(other)).toBeUndefined();
        expect((await begin(other, { key: 'key' })).begun).toEqual({ use: undefined });
      });

      test('of an instance that was killed is of unknown outcome when its time is over', async () => {
        await begin(one, { key: 'key' });
        await tested.pass(10_001);
        expect(await asked(other)).toBe('unknown');
        expect((await begin(other, { key: 'key' })).begun.record).toMatchObject({ outcome: 'unknown' });
      });

      test('whose answer is too long says only that it was sent', async () => {
        await (await begin(one, { key: 'key' })).end({ ...ANSWER, text: 'x'.repeat(65_537) });
        expect(await asked(other)).toBe('unknown');
      });

      test('is taken by one of many at once', async () => {
        const all = await Promise.all(Array.from({ length: 8 }, (_, n) => begin(n % 2 ? one : other, { key: 'key' })));
        expect(all.filter(({ begun }) => !begun.record)).toHaveLength(1);
      });

      test('is not freed by the end of a write that does not have it', async () => {
        const { end } = await begin(one, { key: 'key' });
        const { end: endOther } = await begin(other, { key: 'key' });
        await endOther('not_sent');
        expect(await asked(one)).toBe('under_way');
        await end(ANSWER);
      });

      test('has no room where the account has too many records already', async () => {
        const text = 'x'.repeat(60_000);
        let n = 0;
        for (; n < 80; n++) {
          const { begun, end } = await begin(one, { key: `key ${n}`, tags: [] });
          if (begun.refusal) break;
          await end({ ...ANSWER, text });
        }
        expect(n).toBeLessThan(80);
        expect((await begin(other, { key: 'one more' })).begun.refusal).toMatchObject({ code: 'store_unavailable' });
        expect((await begin(other, {})).begun).toEqual({ use: undefined });
        expect(await asked(other, 'key 0')).toMatchObject({ text });
      });
    });

    describe('a session', () => {
      test('that was signed out is over everywhere for 30 days, and others live', async () => {
        const [first, second] = [await sessionOf('first'), await sessionOf('second')];
        expect(await signOut(first)).toBe(true);
        expect([await isOver(first), await isOver(second)]).toEqual([true, false]);
        await tested.pass(30 * 86_400_000 - 1_000);
        expect(await isOver(first)).toBe(true);
      });

      test('is over with all others of its account, and one that begins afterwards lives', async () => {
        const [first, second] = [await sessionOf('first'), await sessionOf('second')];
        expect(await signOut(first, 'all')).toBe(true);
        expect([await isOver(first), await isOver(second)]).toEqual([true, true]);
        expect(await isOver(await sessionOf('third'))).toBe(false);
        await tested.pass(60_000);
        expect(await isOver(await sessionOf('fourth'))).toBe(false);
      });

      test('is over with all others where more than 64 have signed out', async () => {
        const living = await sessionOf('living');
        for (let n = 0; n < 64; n++) await signOut(await sessionOf(`${n}`));
        expect(await isOver(living)).toBe(false);
        await signOut(await sessionOf('one more'));
        expect(await isOver(living)).toBe(true);
        expect(await isOver(await sessionOf('new'))).toBe(false);
      });

      test('that is over begins no write', async () => {
        const session = await sessionOf('first');
        await signOut(session);
        expect((await begin(other, { session })).begun).toEqual({ use: undefined, isRevoked: true });
      });
    });

    describe('a limit', () => {
      const window = { name: 'requests by account', lengthMs: 60_000, limit: 100 };
      const count = async (store: Store) => (await store.snapshot({ account, window, waitUntil })).use?.used ?? NaN;

      test('is that of all instances together', async () => {
        let passed = 0;
        for (let n = 0; n < 130; n++) if ((await count(n % 2 ? one : other)) <= window.limit) passed++;
        expect(passed).toBeLessThanOrEqual(window.limit);
        expect(passed).toBeGreaterThan(window.limit * 0.7);
      });

      test('is another one for another account, and begins anew', async () => {
        for (let n = 0; n < 101; n++) await count(one);
        expect(await count(other)).toBeGreaterThan(100);
        account = newAccount();
        expect(await count(other)).toBe(1);
        await tested.pass(120_000);
        expect(await count(one)).toBe(1);
      });
    });
  });
}
