import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import type { NewWrite, Store } from '../../src/store/store.ts';
import { ANSWER, writeOf } from './writes.ts';
import { exampleRequest } from '../support/examples.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json, reset } from '../support/scripted-upstream.ts';
import { openWorld } from '../support/world.ts';

const memoryStore = () => new MemoryStore({ maxBytes: 1_048_576 });

const leave = async (store: Store, write: NewWrite) => {
  await store.beginWrite(write);
  await store.endWrite(write, 'unknown');
};

describe('writes of unknown outcome', () => {
  test('of one account are a part of all, and cost others nothing', async () => {
    const store = memoryStore();
    for (let n = 0; n < 1_000; n++) await leave(store, writeOf());
    let begun = await store.beginWrite(writeOf());
    for (let n = 0; n < 1_000 && !begun.refusal; n++) begun = await store.beginWrite(writeOf());
    expect(begun).toMatchObject({ refusal: { code: 'store_unavailable' } });
    expect(await store.beginWrite(writeOf({ account: 'other' }))).toEqual({ use: undefined });
    expect(await store.beginWrite(writeOf({ now: 70_000, until: 140_000 }))).toEqual({ use: undefined });
  });

  test('make room for others when their time is over, whether their account comes again or not', async () => {
    const store = memoryStore();
    const begin = (n: number) => store.beginWrite(writeOf({ account: `account-${n}` }));
    for (let n = 0; n < 140_000 && !(await begin(n)).refusal; n++);
    expect(await store.beginWrite(writeOf())).toMatchObject({ refusal: { code: 'store_unavailable' } });
    expect(await store.beginWrite(writeOf({ now: 70_000, until: 140_000 }))).toEqual({ use: undefined });
  });

  test('refuse an equal purchase without a key, as often as it comes', async () => {
    const store = memoryStore();
    await leave(store, writeOf({ key: 'key', isPurchase: true }));
    for (let times = 0; times < 3; times++)
      expect(await store.beginWrite(writeOf({ isPurchase: true }))).toMatchObject({ record: { outcome: 'unknown' } });
  });

  test('a purchase that was refused beside an equal one leaves nothing of its own', async () => {
    const store = memoryStore();
    const first = writeOf({ key: 'key', isPurchase: true });
    expect(await store.beginWrite(first)).toEqual({ use: undefined });
    expect(await store.beginWrite(writeOf({ isPurchase: true }))).toMatchObject({ record: { outcome: 'under_way' } });
    await store.endWrite(first, ANSWER);
    expect(await store.beginWrite(writeOf({ isPurchase: true }))).toEqual({ use: undefined });
  });
});

test('an account that may have no more keys still writes without one', async () => {
  const store = memoryStore();
  const answer = { status: 200, text: 'x'.repeat(60_000) };
  for (let n = 0; n < 1_000; n++) {
    const write = writeOf({ key: `key-${n}` });
    if (!(await store.beginWrite(write)).refusal) await store.endWrite(write, answer);
  }
  expect(await store.beginWrite(writeOf({ key: 'next' }))).toMatchObject({ refusal: { code: 'store_unavailable' } });
  expect(await store.beginWrite(writeOf())).toEqual({ use: undefined });
});

test('under a mark equal items of a batch share a call, and no two requests do', async () => {
  const world = await openWorld();
  world.upstream.on(callOf('purchasePlan'), reset());
  expect(await world.ask('purchasePlan')).toMatchObject({ json: { outcome: 'unknown' } });
  world.upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
  const { path } = exampleRequest('getSubscription');
  const requests = Array.from({ length: 20 }, (_, n) => ({ id: String(n), path }));
  const headers = { 'X-Request-Id': 'the-same' };
  const batch = () => world.call({ path: '/bff/v1/batch', token: world.token, body: { requests }, headers });
  for (const { status } of await Promise.all([batch(), batch()])) expect(status).toBe(200);
  expect(world.upstream.callsTo(callOf('getSubscription'))).toHaveLength(2);
});
