import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { gist, openShop, UNKNOWN } from '../idempotency/helpers.ts';
import { limitedFor, limitOf } from '../limits/helpers.ts';
import { PLAIN } from '../resilience/helpers.ts';
import { writeOf } from '../store/writes.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { exampleRequest } from '../support/examples.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { openWorld } from '../support/world.ts';

/** Where all requests of these tests come from. */
const owner = 'address 127.0.0.1';

const storeOf = () => new MemoryStore({ maxBytes: 1_048_576 });

/** Credentials made up at that address have as many records as there may be. */
const crowdRecords = async (store: MemoryStore) => {
  for (let n = 0; n < 1_100; n++) {
    const write = writeOf({ account: `stranger-${n % 50}`, owner, key: `key-${n}`, tags: [] });
    const { refusal } = await store.beginWrite(write);
    if (!refusal) await store.endWrite(write, { status: 200, text: 'x'.repeat(65_536) });
  }
};

const waitUntil = () => undefined;

/** So many credentials were made up at that address. */
const crowdWindows = (store: MemoryStore, now: number, count = 50_000) => {
  const window = { name: 'requests by account', lengthMs: 60_000, limit: 10 };
  for (let n = 0; n < count; n++) store.snapshot({ account: `stranger-${n}`, owner, now, window, waitUntil });
};

const nth = (n: number, account = 'account') => writeOf({ account, owner, key: `key-${n}`, tags: [] });

/** A write of unknown outcome. */
const unknown = (account: string) => writeOf({ account, owner, until: Infinity });

const READ = 'getSubscription';

describe('what an account had before the upstream accepted it is its own once a good answer shows that it does:', () => {
  test.each(['createApiKey', 'refreshSubuser'] as const)('the record of its first write, %s', async (id) => {
    const store = storeOf();
    const shop = await openShop({}, { store });
    shop.script(id, json(200, bodyOf(id, 1)));
    const first = await shop.keyed(id);
    expect(first.status).toBe(200);
    await crowdRecords(store);
    const again = await shop.keyed(id);
    expect([again.status, again.text, again.headers['idempotency-replayed']]).toEqual([200, first.text, 'true']);
  });

  test('the record of one whose outcome is unknown', async () => {
    const store = storeOf();
    const shop = await openShop({}, { store });
    shop.script('createApiKey', json(500));
    shop.script(READ, json(200, bodyOf(READ, 1)));
    await shop.keyed('createApiKey');
    expect((await shop.ask(READ)).status).toBe(200);
    await crowdRecords(store);
    expect(gist(await shop.keyed('createApiKey'))).toBe(UNKNOWN);
  });

  test('the record of one that is under way then, and ends as nobody knows', async () => {
    const store = storeOf();
    const shop = await openShop({}, { store });
    const gate = barrier();
    shop.script('createApiKey', reply(hold(gate), json(500)));
    shop.script(READ, json(200, bodyOf(READ, 1)));
    const writing = shop.keyed('createApiKey');
    await gate.reached;
    expect((await shop.ask(READ)).status).toBe(200);
    gate.release();
    expect((await writing).status).toBe(502);
    await crowdRecords(store);
    expect(gist(await shop.keyed('createApiKey'))).toBe(UNKNOWN);
  });

  test('the record of one whose body came only after that', async () => {
    const store = storeOf();
    const shop = await openShop({}, { store });
    shop.script('createApiKey', json(500));
    shop.script(READ, json(200, bodyOf(READ, 1)));
    const { path, body = '' } = exampleRequest('createApiKey');
    const headers = {
      Authorization: `Token ${shop.token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': shop.key,
    };
    const begun = request(shop.gateway.url + path, { method: 'POST', headers: { ...headers, Expect: '100-continue' } });
    const answered = once(begun, 'response');
    begun.flushHeaders();
    await once(begun, 'continue');
    expect((await shop.ask(READ)).status).toBe(200);
    begun.end(body);
    const [answer] = (await answered) as [IncomingMessage];
    expect(answer.statusCode).toBe(502);
    answer.resume();
    await crowdRecords(store);
    expect(gist(await shop.keyed('createApiKey'))).toBe(UNKNOWN);
  });

  test('the window of its limit', async () => {
    const store = storeOf();
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '10' }, { store });
    world.upstream.on(callOf(PLAIN), json(200, bodyOf(PLAIN, 1)));
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, 9, 60]);
    crowdWindows(store, world.clock.now());
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 10, 8, 60]);
  });

  test('its marks, which then leave room for others of its address', async () => {
    const store = storeOf();
    const accounts = Array.from({ length: 10 }, (_, n) => `account-${n}`);
    for (const account of accounts) while (!(await store.beginWrite(unknown(account))).refusal);
    expect((await store.beginWrite(unknown('stranger'))).refusal).toBeDefined();
    for (const account of accounts) store.accept(account);
    expect((await store.beginWrite(unknown('stranger'))).refusal).toBeUndefined();
    expect((await store.beginWrite(unknown('account-0'))).refusal).toBeDefined();
  });

  test('the room that its records take, and what is released of them is free', async () => {
    const store = storeOf();
    const accounts = Array.from({ length: 5 }, (_, n) => `account-${n}`);
    const writes = [];
    for (let n = 0; ; n++) {
      const write = nth(n, accounts[n % 5]);
      if ((await store.beginWrite(write)).refusal) break;
      writes.push(write);
    }
    expect((await store.beginWrite(nth(0, 'stranger'))).refusal).toBeDefined();
    for (const account of accounts) store.accept(account);
    expect((await store.beginWrite(nth(0, 'stranger'))).refusal).toBeUndefined();
    for (const write of writes) await store.endWrite(write, 'refused');
    expect(store.usage()).toMatchObject({ records: 1 });
    expect((await store.beginWrite(nth(0, 'account-0'))).record).toBeUndefined();
  });
});

test('the limit of an address stands after 50,000 credentials that were made up there', async () => {
  const store = storeOf();
  const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '10' }, { store });
  world.upstream.on(callOf('loginSocial'), json(200, bodyOf('loginSocial', 1)));
  for (let sent = 0; sent < 20; sent++) expect((await world.ask('loginSocial')).status).toBe(200);
  crowdWindows(store, world.clock.now());
  expect(limitedFor(await world.ask('loginSocial'))).toBe(60);
});
