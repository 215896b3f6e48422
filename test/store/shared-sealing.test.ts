import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { nodeDigest } from '../../src/entry/node/digest.ts';
import { EVERYTHING, type Place, type Store } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { PATIENT } from './engine.ts';
import { LEAK_MARK, leaksIn, secret } from '../support/secrets.ts';
import { entryOf, heldIn, keep, newAccount, placeIn } from './contract.ts';
import { MINUTE_MS } from './limits.ts';
import { ask, claimOf, later } from './records.ts';
import { type RedisWorld, redisWorld, SECRET } from './redis-world.ts';
import { arrivalOf } from './visits.ts';

const ANSWER = { status: 200, text: '{"id":1}' };

describe.skipIf(!hasRedis)(`what stands in Redis${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;

  beforeAll(async () => {
    world = await redisWorld();
  });

  beforeEach(async () => {
    await deleteAllButLife();
  });

  afterAll(() => world.close());

  const names = async (kind: string) => (await world.redis.client.keys(`portico:${kind}:*`)).toSorted();

  async function deleteAllButLife(): Promise<void> {
    const all = await world.redis.client.keys('portico:*:*');
    if (all.length > 0) await world.redis.client.del(all);
  }

  describe('after a bit of everything', () => {
    const texts = {
      text: `{"email":"${LEAK_MARK}"}`,
      key: `getSubuser/5?query-${LEAK_MARK}`,
      tag: `subusers/${LEAK_MARK}`,
      idempotencyKey: `idempotency-${LEAK_MARK}`,
      fingerprint: `fingerprint-${LEAK_MARK}`,
      answer: `{"card":"${LEAK_MARK}"}`,
      etag: `"${LEAK_MARK}"`,
    };

    /** Each operation of a store at least once, with and without an end. */
    async function everything(store: Store, credential: string): Promise<void> {
      const account = await nodeDigest([SECRET]).account(credential);
      const place: Place = { account, key: texts.key, tags: [texts.tag, 'subusers'] };
      const entry = entryOf(texts.text, { etag: texts.etag, validators: { etag: texts.etag } });
      await keep(store.answers, place, entry);
      await store.visit(arrivalOf(account, [place]));
      await store.answers.touch(account, [texts.tag]);
      await store.answers.touch(account, [EVERYTHING]);
      await store.answers.drop(place);
      await keep(store.answers, place, entry);
      const reader = { ...place, account: newAccount() };
      const writer = { ...place, account: newAccount() };
      for (const at of [reader, writer]) await store.answers.lookup(at);
      await store.answers.touch(writer.account, [EVERYTHING]);
      await store.turns?.take(place, 'versions');
      await store.limits.hold(account, Date.now() + MINUTE_MS);
      await store.limits.take({ account, name: 'upstream calls', lengthMs: MINUTE_MS, now: Date.now() });
      for (const end of ['claim', 'begin', 'settle', 'unknown', 'release']) {
        const claim = claimOf({ account, key: `${texts.idempotencyKey}-${end}`, fingerprint: texts.fingerprint });
        await store.records.claim(claim);
        if (end !== 'claim') await store.records.begin(claim);
        if (end === 'settle') await store.records.settle(claim, { status: 200, text: texts.answer });
        if (end === 'unknown') await store.records.settle(claim, 'unknown');
        if (end === 'release') await store.records.release(claim);
      }
    }

    beforeEach(async () => {
      const { store } = await world.open();
      await everything(store, secret());
    });

    test('gives away nothing of what was asked and answered', async () => {
      const dump = await world.redis.dump();
      expect(dump.length).toBeGreaterThan(20);
      for (const encoding of ['latin1', 'utf8', 'hex', 'base64'] as const) {
        const text = dump.map((bytes) => bytes.toString(encoding)).join('\n');
        expect(leaksIn(text), encoding).toEqual([]);
        for (const part of ['getSubuser', 'subusers', 'under_way', 'fingerprint', 'idempotency', 'outcome'])
          expect(text).not.toContain(part);
      }
    });

    test('has an end each', async () => {
      const keys = await world.redis.client.keys('*');
      expect(keys.length).toBeGreaterThanOrEqual(10);
      for (const key of keys) expect(await world.redis.client.pttl(key), key).toBeGreaterThan(0);
    });

    test('is gone a day later, without anybody’s doing', async () => {
      await world.redis.pass(86_400_000 + MINUTE_MS);
      expect(await world.redis.client.keys('portico:*:*')).toEqual([]);
    });
  });

  test('stays small for an account that touches tags without end', async () => {
    const { store } = await world.open();
    const place = placeIn(newAccount());
    await keep(store.answers, place, entryOf('"copy"'));
    for (let n = 0; n < 200; n += 1) {
      await store.answers.touch(place.account, [`transactions/${n}`]);
      if (n % 50 === 0) await store.answers.lookup(place);
    }
    const [versions = ''] = await names('versions');
    expect(await world.redis.client.hlen(versions)).toBeLessThanOrEqual(64);
    expect(await world.redis.client.pttl(versions)).toBeGreaterThan(0);
  });

  /** The name under which what this does comes to stand. */
  const made = async (kind: string, act: () => Promise<unknown>) => {
    const before = new Set(await names(kind));
    await act();
    const [name] = (await names(kind)).filter((each) => !before.has(each));
    if (name === undefined) throw new Error(`this has made no ${kind}`);
    return name;
  };

  /** Another way of being there: what stands at `to` is not what was sealed for it. */
  const TAMPERINGS = [
    'moved within its account',
    'moved to another account',
    'changed',
    'cut off',
    'of another secret',
  ];

  /** What comes to stand where an instance looks for what `put` keeps. */
  async function tamper(how: string, kind: string, put: (store: Store, account: string, key: string) => Promise<void>) {
    const account = newAccount();
    const { store } = await world.open();
    const to = await made(kind, () => put(store, account, 'one'));
    const value = (await world.redis.client.hgetBuffer(to, 'd')) ?? Buffer.alloc(0);
    const { client } = world.redis;
    const copy = async (from: string) => client.hset(to, 'd', (await client.hgetBuffer(from, 'd')) ?? '');
    if (how === 'moved within its account') await copy(await made(kind, () => put(store, account, 'two')));
    if (how === 'moved to another account') await copy(await made(kind, () => put(store, newAccount(), 'one')));
    if (how === 'of another secret') {
      const { store: stranger } = await world.open(['another secret that is long enough']);
      await copy(await made(kind, () => put(stranger, account, 'one')));
    }
    if (how === 'cut off') await client.hset(to, 'd', value.subarray(0, 5));
    if (how === 'changed') {
      value[value.length - 20] = (value.at(-20) ?? 0) ^ 1;
      await client.hset(to, 'd', value);
    }
    const { store: reader } = await world.open();
    return { account, reader };
  }

  describe.each(TAMPERINGS)('and was %s', (how) => {
    test('is no answer to anything', async () => {
      const { account, reader } = await tamper(how, 'copy', async (store, of, key) => {
        await keep(store.answers, placeIn(of, key), entryOf('"sealed"'));
      });
      const { known } = await reader.visit(arrivalOf(account, [placeIn(account, 'one')]));
      expect((await known.lookup(placeIn(account, 'one'))).entry).toBeUndefined();
      expect(await heldIn(reader.answers, placeIn(account, 'one'))).toBeUndefined();
      expect(await keep(reader.answers, placeIn(account, 'one'), entryOf('"new"'))).toBe(true);
      expect(await heldIn(reader.answers, placeIn(account, 'one'))).toBe('"new"');
    });

    test('is a record of unknown outcome, and never free', async () => {
      const claim = claimOf();
      const { account, reader } = await tamper(how, 'record', async (store, of, key) => {
        const own = { ...claim, account: of, key };
        await store.records.claim(own);
        await store.records.begin(own);
        await store.records.settle(own, ANSWER);
      });
      const found = await ask(reader.records, later({ ...claim, account, key: 'one' }, 1));
      expect(found).toEqual({ fingerprint: 'print', outcome: 'unknown' });
    });
  });

  test('opens for another instance where nothing was done to it', async () => {
    const { account, reader } = await tamper('not at all', 'copy', async (store, of, key) => {
      await keep(store.answers, placeIn(of, key), entryOf('"sealed"'));
    });
    expect(await heldIn(reader.answers, placeIn(account, 'one'))).toBe('"sealed"');
  });

  test('is never sealed twice alike', async () => {
    const { store } = await world.open();
    const place = placeIn(newAccount());
    const values = [];
    for (let n = 0; n < 3; n += 1) {
      await keep(store.answers, place, entryOf('"same"'));
      values.push((await world.redis.client.hgetBuffer((await names('copy'))[0] ?? '', 'd'))?.toString('hex'));
    }
    expect(new Set(values).size).toBe(3);
  });
});
