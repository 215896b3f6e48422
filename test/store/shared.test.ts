import { afterAll, describe, expect, test, vi } from 'vitest';
import { type Engine, NotAsked, type Question, type Save } from '../../src/store/shared/engine.ts';
import type { SharedStore } from '../../src/store/shared.ts';
import type { CacheKey, Snapshot } from '../../src/store/store.ts';
import { type ManualClock, manualClock, START_MS } from '../support/clock.ts';
import { type ObjectEngine, objectEngine } from '../support/object-storage.ts';
import { copiesContract, entryOf, keep, keyIn, look, newAccount, outcomesContract } from './contract.ts';
import { sharedStore, sharedWorld } from './shared-world.ts';
import { ANSWER, questionOf, writeOf } from './writes.ts';

copiesContract('a shared store', sharedWorld);
outcomesContract('a shared store', sharedWorld);

type Method = 'snapshot' | 'save' | 'beginWrite' | 'endWrite' | 'change';
const METHODS: readonly Method[] = ['snapshot', 'save', 'beginWrite', 'endWrite', 'change'];

/** An engine whose requests and replies can be delayed, and are counted. */
class Way {
  /** Requests and replies, all of them. */
  static moves = 0;
  readonly asked: Method[] = [];
  readonly questions: Question[] = [];
  /** Runs before a request goes on. */
  before: (method: Method) => Promise<unknown> = async () => undefined;
  /** Runs before its reply is returned. */
  after: (method: Method) => Promise<unknown> = async () => undefined;
  readonly engine: Engine;

  constructor(engine: ObjectEngine) {
    const asking = METHODS.map((method) => [
      method,
      async (account: string, question: never) => {
        this.asked.push(method);
        Way.moves++;
        if (method === 'snapshot') this.questions.push(question);
        await this.before(method);
        const reply = await engine[method](account, question);
        Way.moves++;
        await this.after(method);
        return reply;
      },
    ]);
    this.engine = Object.fromEntries(asking);
  }

  times(method: Method): number {
    return this.asked.filter((one) => one === method).length;
  }
}

interface World {
  readonly way: Way;
  readonly clock: ManualClock;
  readonly store: SharedStore;
  readonly other: SharedStore;
  readonly pass: (ms: number) => Promise<void>;
}

/** Two instances; what the first sends to the engine can be delayed. */
function openWorld(): World {
  const objects = objectEngine();
  const clock = manualClock();
  const way = new Way(objects);
  return {
    way,
    clock,
    store: sharedStore({ engine: way.engine, clock }),
    other: sharedStore({ engine: objects, clock }),
    async pass(ms) {
      objects.pass(ms);
      clock.advance(ms);
      await settle();
    },
  };
}

/** Lets all finish that waits for no clock. */
const settle = async () => {
  for (let quiet = 0, before = -1; quiet < 3;) {
    await new Promise<void>((resolve) => void setTimeout(resolve, 2));
    const isQuiet = before === Way.moves && sealing === 0;
    quiet = isQuiet ? quiet + 1 : 0;
    before = Way.moves;
  }
};

/** WebCrypto calls under way, which another thread does. */
let sealing = 0;
for (const name of ['encrypt', 'decrypt', 'sign'] as const) {
  const work = crypto.subtle[name].bind(crypto.subtle) as (...of: unknown[]) => Promise<ArrayBuffer>;
  vi.spyOn(crypto.subtle, name).mockImplementation((...of: unknown[]) => {
    sealing++;
    return work(...of).finally(() => void sealing--);
  });
}
afterAll(() => vi.restoreAllMocks());

const request = async (store: SharedStore, keys: readonly CacheKey[], fetches = true): Promise<Snapshot> =>
  store.snapshot({
    account: keys[0]!.account,
    owner: keys[0]!.account,
    now: START_MS,
    window: undefined,
    keys,
    fetches,
    waitUntil: () => undefined,
  });

/** A request that has the lease to fetch this. */
async function fetching(store: SharedStore, key: CacheKey) {
  const snapshot = await request(store, [key]);
  const found = await snapshot.lease!(key, await snapshot.lookup(key, START_MS), NEVER);
  return { snapshot, found, end: (text?: string) => snapshot.save(key, found, text ? { entry: entryOf(text) } : {}) };
}

const TIMES = { now: START_MS, endsAt: START_MS + 10_000, until: START_MS + 70_000 };
const REFUSED = { refusal: { code: 'store_unavailable' } };
const WINDOW = { name: 'requests', lengthMs: 60_000, limit: 2 };
/** A write that has begun and not ended. */
const announced = async (store: SharedStore, account: string) => {
  const write = writeOf({ account, ...TIMES });
  await store.beginWrite(write);
  return write;
};

const NEVER = new AbortController().signal;
const never = () => new Promise<never>(() => {});

describe('a lease', () => {
  test('is with one instance; the others wait, and take its copy', async () => {
    const { store, other, pass } = openWorld();
    const key = keyIn(newAccount());
    const first = await fetching(store, key);
    const second = fetching(other, key);
    await pass(25);
    await first.end('"made"');
    await pass(50);
    expect((await second).found).toMatchObject({ isMadeElsewhere: true, entry: { text: '"made"' } });
  });

  test('that ends without a copy lets all fetch at once', async () => {
    const { store, other, pass } = openWorld();
    const key = keyIn(newAccount());
    const first = await fetching(store, key);
    const waiting = [other, other, store].map((one) => fetching(one, key));
    await pass(25);
    await first.end();
    await pass(50);
    for (const { found } of await Promise.all(waiting)) expect(found).toMatchObject({ entry: undefined });
  });

  test('of a dead instance is waited for until it expires', async () => {
    const { store, other, way, pass } = openWorld();
    const key = keyIn(newAccount());
    await fetching(store, key);
    way.before = never; // gone
    let isOver = false;
    const waiting = fetching(other, key).finally(() => (isOver = true));
    for (let ms = 0; ms < 1_400; ms += 100) await pass(100);
    expect(isOver).toBe(false);
    for (let ms = 0; ms < 600; ms += 100) await pass(100);
    expect((await waiting).found.entry).toBeUndefined();
  });

  test('is renewed while its fetch goes on, and waited for no longer than `waitMs`', async () => {
    const { store, other, pass } = openWorld();
    const key = keyIn(newAccount());
    const first = await fetching(store, key);
    let isOver = false;
    const waiting = fetching(other, key).finally(() => (isOver = true));
    for (let ms = 0; ms < 4_900; ms += 100) await pass(100);
    expect(isOver).toBe(false);
    for (let ms = 0; ms < 600; ms += 100) await pass(100);
    expect((await waiting).found.isMadeElsewhere).toBeFalsy();
    expect(await first.end('"late"')).toMatchObject({ stored: true });
  });

  test('is waited for with growing pauses, and one question for all keys of a request', async () => {
    const { store, other, way, pass } = openWorld();
    const account = newAccount();
    const keys = ['a', 'b', 'c'].map((name) => keyIn(account, name));
    for (const key of keys) await fetching(other, key);
    const snapshot = await request(store, keys);
    const asked = way.questions.length;
    const leaving = new AbortController();
    const waits = keys.map(async (key) => snapshot.lease!(key, await snapshot.lookup(key, 0), leaving.signal));
    const left = Promise.allSettled(waits);
    await settle();
    const at: number[] = [];
    for (let ms = 0; ms < 1_500; ms += 25) {
      const before = way.questions.length;
      await pass(25);
      if (way.questions.length > before) at.push(ms + 25);
    }
    expect(at.slice(0, 6)).toEqual([25, 75, 175, 375, 775, 1_175]);
    for (const question of way.questions.slice(asked)) expect(question.keys).toHaveLength(3);
    leaving.abort(new Error('left'));
    expect((await left).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  });

  test('that a request has not used is returned when the request is over', async () => {
    const { store, other } = openWorld();
    const key = keyIn(newAccount());
    const snapshot = await request(store, [key]);
    expect((await (await request(other, [key])).lookup(key, 0)).isLeasedElsewhere).toBe(true);
    snapshot.end?.();
    await settle();
    expect((await (await request(other, [key])).lookup(key, 0)).isLeasedElsewhere).toBe(false);
  });

  test('of a reply that comes too late is returned', async () => {
    const { store, other, way, pass } = openWorld();
    const key = keyIn(newAccount());
    const late = Promise.withResolvers<void>();
    way.after = () => late.promise;
    const asking = request(store, [key]);
    await settle();
    await pass(201);
    await pass(1);
    expect((await (await asking).lookup(key, 0)).isHidden).toBe(true);
    way.after = async () => undefined;
    late.resolve();
    await settle();
    expect((await (await request(other, [key])).lookup(key, 0)).isLeasedElsewhere).toBe(false);
  });

  test('is neither taken nor waited for by a request for a fresh answer', async () => {
    const { store, other } = openWorld();
    const key = keyIn(newAccount());
    const snapshot = await request(store, [key], false);
    expect((await (await request(other, [key])).lookup(key, 0)).isLeasedElsewhere).toBe(false);
    const found = await snapshot.lookup(key, 0);
    expect(await snapshot.lease!(key, found, NEVER)).toBe(found);
  });
});

test('what a request asks for may depend on its instance’s copies, which are known without asking', async () => {
  const { store, other, way } = openWorld();
  const key = keyIn(newAccount());
  await keep(store, key, entryOf('"copy"'));
  const before = way.questions.length;
  expect([store.copyOf(key)?.text, other.copyOf(key)?.text]).toEqual(['"copy"', undefined]);
  expect(way.questions).toHaveLength(before);
});

describe('while the engine is slow or away', () => {
  test('all store calls of a read wait 200 ms together', async () => {
    const { store, way, pass } = openWorld();
    const key = keyIn(newAccount());
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let asked = 0;
    way.before = () => gates[asked++]?.promise ?? Promise.resolve();
    const asking = fetching(store, key);
    await settle();
    await pass(150);
    gates[0]!.resolve();
    const { end } = await asking;
    let isSaved = false;
    const saving = Promise.resolve(end('"copy"')).finally(() => (isSaved = true));
    await settle();
    await pass(39);
    expect(isSaved).toBe(false);
    await pass(2);
    await pass(1);
    expect(await saving).toMatchObject({ stored: false });
  });

  test('equal reads find the same, until this instance writes', async () => {
    const { store, way } = openWorld();
    way.before = () => Promise.reject(new Error('away'));
    const key = keyIn(newAccount());
    const [one, other] = [await look(store, key), await look(store, key)];
    expect(one).toMatchObject({ isHidden: true, version: other.version });
    expect(await store.beginWrite(writeOf({ account: key.account }))).toMatchObject(REFUSED);
    expect((await look(store, key)).version).not.toBe(one.version);
  });

  test('limits are counted here, on from the count of all instances', async () => {
    const { store, other, way } = openWorld();
    const counted = { account: 'known', owner: 'known', now: START_MS, window: WINDOW, waitUntil: () => undefined };
    for (const one of [other, other, store]) await one.snapshot(counted);
    way.before = () => Promise.reject(new Error('away'));
    expect((await store.snapshot(counted)).use?.used).toBe(4);
  });

  test('limits of an account that the store does not know are counted here', async () => {
    const { store, way } = openWorld();
    way.before = () => Promise.reject(new Error('away'));
    const asked = {
      account: 'account',
      owner: 'account',
      now: START_MS,
      window: WINDOW,
      waitUntil: () => undefined,
    };
    expect((await store.snapshot(asked)).use?.used).toBe(1);
    expect((await store.snapshot(asked)).use?.used).toBe(2);
  });

  test('a write is refused after a second, and does nothing later', async () => {
    const { store, other, way, pass } = openWorld();
    const key = keyIn(newAccount(), 'key', ['group']);
    await keep(other, key, entryOf('"copy"'));
    const late = Promise.withResolvers<void>();
    way.before = (method) => (method === 'beginWrite' ? late.promise : Promise.resolve());
    const write = writeOf({
      account: key.account,
      key: 'one',
      ...TIMES,
    });
    const refused = expect(store.beginWrite(write)).resolves.toMatchObject(REFUSED);
    await settle();
    await pass(1_000);
    await pass(1);
    await refused;
    late.resolve();
    await settle();
    expect((await look(other, key)).entry?.text).toBe('"copy"');
    expect(await other.beginWrite({ ...write, nonce: 'another' })).toEqual({ use: undefined });
  });
});

test('a write that was never asked for leaves nothing to report', async () => {
  const { store, way } = openWorld();
  way.before = () => Promise.reject(new NotAsked());
  for (let n = 0; n < 100; n++)
    expect(await store.beginWrite(writeOf({ ...TIMES, window: WINDOW }))).toMatchObject({
      ...REFUSED,
      use: { used: n + 1 },
    });
  expect(store.pending).toBe(0);
});

test('an older answer never replaces a newer one where the engine keeps neither', async () => {
  const { store, way, pass } = openWorld();
  const key = keyIn(newAccount());
  const save = way.engine.save.bind(way.engine);
  Object.assign(way.engine, { save: (account: string, of: Save) => save(account, { ...of, copy: undefined }) });
  const older = await request(store, [key]);
  const found = await older.lookup(key, 0);
  await pass(5);
  await keep(store, key, entryOf('"newer"'));
  await older.save(key, found, { entry: entryOf('"older"') });
  expect((await look(store, key)).entry?.text).toBe('"newer"');
});

test('a lease that comes after its first reader has left is still used by the fetch', async () => {
  const { store, other, pass } = openWorld();
  const key = keyIn(newAccount());
  const first = await fetching(other, key);
  const snapshot = await request(store, [key]);
  const leased = snapshot.lease!(key, await snapshot.lookup(key, 0), NEVER);
  snapshot.end?.();
  await first.end();
  await pass(25);
  await pass(50);
  await leased;
  expect((await (await request(other, [key])).lookup(key, 0)).isLeasedElsewhere).toBe(true);
});

test('a question about a key that is not answered is refused, and nothing is reported of it', async () => {
  const { store, way } = openWorld();
  way.before = () => Promise.reject(new Error('away'));
  expect(await store.beginWrite(questionOf({ key: 'key', now: START_MS }))).toMatchObject(REFUSED);
  await settle();
  expect([store.pending, way.asked]).toEqual([0, ['beginWrite']]);
});

describe('the end of a write', () => {
  test('is waited for 200 ms, and reported until it is acknowledged', async () => {
    const { store, other, way, pass } = openWorld();
    const key = keyIn(newAccount(), 'key', ['group']);
    const write = await announced(store, key.account);
    way.before = (method) => (method === 'endWrite' ? Promise.reject(new Error('away')) : Promise.resolve());
    let isAnswered = false;
    const ending = store.endWrite(write, ANSWER).finally(() => (isAnswered = true));
    await settle();
    await pass(199);
    expect(isAnswered).toBe(false);
    await pass(1);
    await pass(1);
    await ending;
    expect((await look(other, key)).isHidden).toBe(true);
    expect(store.pending).toBe(1);
    way.before = async () => undefined;
    for (let ms = 0; ms < 2_000; ms += 100) await pass(100);
    expect((await look(other, key)).isHidden).toBeFalsy();
    expect(store.pending).toBe(0);
  });

  test('is reported no longer than its mark stands', async () => {
    const { store, way, pass } = openWorld();
    const write = await announced(store, newAccount());
    way.before = (method) => (method === 'endWrite' ? Promise.reject(new Error('away')) : Promise.resolve());
    void store.endWrite(write, ANSWER);
    for (let ms = 0; ms < 75_000; ms += 1_000) await pass(1_000);
    expect(store.pending).toBe(0);
    const reports = way.times('endWrite');
    await pass(10_000);
    expect(way.times('endWrite')).toBe(reports);
  });
});

describe.each(['read', 'write'] as const)('the refused credential of a %s', (what) => {
  /** Both instances have a copy; then the first is refused the credential, and its report does not reach the engine. */
  async function refusedUnacknowledged() {
    const world = openWorld();
    const { store, way, pass } = world;
    const key = keyIn(newAccount());
    await keep(store, key, entryOf('"copy"'));
    const snapshot = await request(store, [key]);
    const write = await announced(store, key.account);
    way.before = (method) => (method === 'snapshot' ? Promise.resolve() : Promise.reject(new Error('away')));
    const dropping = async () => snapshot.save(key, await snapshot.lookup(key, 0), { drop: 'everything' });
    const refused = what === 'read' ? dropping() : store.endWrite(write, 'credential_refused');
    await settle();
    for (const ms of [100, 100, 1, 1]) await pass(ms);
    await refused;
    return { ...world, key };
  }

  test('is reported until that is acknowledged, and its copies are not used meanwhile', async () => {
    const { store, other, way, pass, key } = await refusedUnacknowledged();
    expect((await look(store, key)).isHidden).toBe(true);
    way.before = async () => undefined;
    for (let ms = 0; ms < 1_000; ms += 100) await pass(100);
    for (const one of [store, other]) expect(await look(one, key)).toMatchObject({ entry: undefined });
    expect((await look(store, key)).isHidden).toBeFalsy();
  });

  test('is not forgotten by an instance that could not report it for a minute', async () => {
    const { store, other, way, pass, key } = await refusedUnacknowledged();
    for (let ms = 0; ms < 75_000; ms += 5_000) await pass(5_000);
    expect(store.pending).toBe(0);
    expect((await look(store, key)).isHidden).toBe(true); // which begins to report it anew
    way.before = async () => undefined;
    await settle();
    await pass(50);
    for (const one of [store, other]) expect(await look(one, key)).toMatchObject({ entry: undefined });
    expect((await look(store, key)).isHidden).toBeFalsy();
  });
});

test('an instance keeps its own copy where the engine has no room for one, under the same version', async () => {
  const { store, other, way } = openWorld();
  const key = keyIn(newAccount());
  const { engine } = way;
  const save = engine.save.bind(engine);
  Object.assign(engine, {
    save: (account: string, of: Parameters<Engine['save']>[1]) => save(account, { ...of, copy: undefined }),
  });
  expect(await keep(store, key, entryOf('"own"'))).toBe(true);
  expect((await look(store, key)).entry?.text).toBe('"own"');
  expect((await look(other, key)).entry).toBeUndefined();
  const write = writeOf({
    account: key.account,
    tags: ['subusers'],
    ...TIMES,
  });
  await other.beginWrite(write);
  await other.endWrite(write, ANSWER);
  expect((await look(store, key)).entry).toBeUndefined();
});

describe('secrets', () => {
  const [OLD, NEW] = ['an old secret that is long enough to be', 'a new secret that is long enough to be one'];
  const objects = objectEngine();
  const open = (secrets: readonly string[], upstream?: string) =>
    sharedStore({ engine: objects, clock: manualClock(), secrets, ...(upstream && { upstream }) });

  test('new ones in front: copies and records are shared', async () => {
    const [old, turned] = [open([OLD]), open([NEW, OLD])];
    const key = keyIn(newAccount());
    await keep(old, key, entryOf('"copy"'));
    expect((await look(turned, key)).entry?.text).toBe('"copy"');
    const write = writeOf({ account: key.account, key: 'one', tags: [], ...TIMES });
    await turned.beginWrite(write);
    await turned.endWrite(write, ANSWER);
    expect(await old.beginWrite({ ...write, nonce: 'another' })).toMatchObject({ record: { outcome: ANSWER } });
  });

  test('a copy sealed with one that is not listed is a miss, and is replaced', async () => {
    const [old, turned] = [open([OLD]), open([NEW, OLD])];
    const key = keyIn(newAccount());
    await keep(turned, key, entryOf('"of the new"'));
    objects.pass(1);
    const snapshot = await request(old, [key]);
    const found = await snapshot.lookup(key, 0);
    expect(found).toMatchObject({ entry: undefined, isLeasedElsewhere: false });
    expect(await snapshot.save(key, found, { entry: entryOf('"of the old"') })).toMatchObject({ stored: true });
    expect((await look(turned, key)).entry?.text).toBe('"of the old"');
  });

  test('of another upstream: nothing is shared', async () => {
    const [one, other] = [open([OLD], 'http://one.test/'), open([OLD], 'http://other.test/')];
    const key = keyIn(newAccount());
    await keep(one, key, entryOf('"of one"'));
    expect((await look(other, key)).entry).toBeUndefined();
  });
});

test('the clocks of instances do not change the age of a copy', async () => {
  const objects = objectEngine();
  const [early, late] = [manualClock(), manualClock(START_MS + 7 * 86_400_000)];
  const [one, other] = [sharedStore({ engine: objects, clock: early }), sharedStore({ engine: objects, clock: late })];
  const key = keyIn(newAccount());
  await keep(other, key, entryOf('"copy"', { storedAt: late.now() }));
  objects.pass(10_000);
  early.advance(10_000);
  expect((await look(one, key)).entry?.storedAt).toBe(early.now() - 10_000);
});

test('a cooldown is shared', async () => {
  const objects = objectEngine();
  const clock = manualClock();
  const open = () => sharedStore({ engine: objects, clock });
  const [one, other] = [open(), open()];
  const account = newAccount();
  const owned = { account, owner: account };
  const waitUntil = vi.fn<(work: Promise<unknown>) => void>();
  one.coolDown(owned, START_MS + 5_000, waitUntil);
  await Promise.all(waitUntil.mock.calls.map(([work]) => work));
  await look(other, keyIn(account));
  expect(other.coolsUntil(account)).toBe(START_MS + 5_000);
});

test("after the engine's clock was set back an instance takes newer copies in the place of its own", async () => {
  const world = sharedWorld();
  const { engine, store, other } = world;
  const key = keyIn(newAccount());
  for (const one of [store, other]) expect(await keep(one, key, entryOf('"before"'))).toBe(true);
  engine.pass(-600_000);
  for (const one of [store, other]) expect((await look(one, key)).entry).toBeUndefined();
  expect(await keep(store, key, entryOf('"after"'))).toBe(true);
  for (const one of [store, other]) expect((await look(one, key)).entry?.text).toBe('"after"');
});
