import { describe, expect, test } from 'vitest';
import { gist, good, goodGist, openShop, UNKNOWN } from './helpers.ts';
import { noticed } from '../resilience/helpers.ts';
import { burst } from '../resilience/slots.ts';
import { clockOfDeadlines, watchedClock } from '../support/clock.ts';
import { callOf } from '../support/marked.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { fillWithRecords, fullOfMarks, memoryStore } from '../support/stores.ts';
import { rowOf, invalidatedReads } from '../support/table.ts';
import { accountIds, postIds, socialIds } from '../support/table.ts';

const READ = 'getVerificationFlow';

/** So many failures open the circuit, which lets one call through after so long. */
const FAILURES = 25;
const PROBE_SECONDS = 5;

describe.each(postIds)('%s that the gateway keeps back was never sent, so that its key is free', (id) => {
  test('while the circuit is open', async () => {
    const shop = await openShop();
    shop.upstream.on(callOf('createApiKey'), json(500));
    for (let call = 0; call < FAILURES; call += 1) await shop.ask('createApiKey', { token: secret() });
    const callsBefore = shop.upstream.calls.length;
    for (let time = 0; time < 2; time += 1) expect(gist(await shop.keyed(id))).toBe('503 upstream_unavailable');
    expect(shop.upstream.calls).toHaveLength(callsBefore);
    shop.advance(PROBE_SECONDS);
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  });

  test('for want of a slot', async () => {
    const clock = watchedClock();
    const shop = await openShop({ UPSTREAM_MAX_CONNECTIONS: '1' }, { clock });
    const gate = barrier();
    shop.script(READ, reply(hold(gate), json(200, '{"id":1}')));
    const reading = shop.ask(READ, { token: secret() });
    await gate.reached;
    const waiting = shop.keyed(id);
    await clock.waits(burst); // only now is it sure to be the first of the two
    expect(gist(await shop.keyed(id))).toBe('409 idempotency_in_progress');
    shop.advance(1);
    expect(gist(await waiting)).toBe('503 overloaded');
    gate.release();
    await reading;
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  });

  test('because its client has left before there was a slot', async () => {
    const clock = watchedClock();
    const shop = await openShop({ UPSTREAM_MAX_CONNECTIONS: '1' }, { clock });
    const gate = barrier();
    shop.script(READ, reply(hold(gate), json(200, '{"id":1}')));
    const reading = shop.ask(READ, { token: secret() });
    await gate.reached;
    const client = new AbortController();
    const left = shop.keyed(id, { signal: client.signal });
    await clock.waits(burst);
    expect(gist(await shop.keyed(id))).toBe('409 idempotency_in_progress');
    client.abort();
    await expect(left).rejects.toThrow();
    await noticed(shop, 1);
    gate.release();
    await reading;
    expect(shop.upstream.calls).toHaveLength(1);
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  });
});

describe.each(accountIds)('%s that the gateway keeps back was never sent, so that its key is free', (id) => {
  test('while the upstream wants no calls of the account', async () => {
    const shop = await openShop();
    shop.script(READ, json(429, '', { 'Retry-After': '30' }));
    await shop.ask(READ);
    for (let time = 0; time < 2; time += 1) expect(gist(await shop.keyed(id))).toBe('429 rate_limited');
    shop.advance(30);
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
    expect(shop.upstream.calls).toHaveLength(2);
  });

  test('while the account has asked too often', async () => {
    const shop = await openShop({ RATE_LIMIT_PER_MINUTE: '1' });
    shop.script(READ, json(200, '{"id":1}'));
    await shop.ask(READ);
    expect(gist(await shop.keyed(id))).toBe('429 rate_limited');
    shop.advance(60);
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  });
});

test.each(socialIds)('%s of an address that has asked too often has used no key', async (id) => {
  const shop = await openShop({ RATE_LIMIT_PER_MINUTE: '600' });
  const body = '{}'; // refused, and counted
  for (let time = 0; time < 20; time += 1) await shop.ask(id, { body });
  expect(gist(await shop.keyed(id))).toBe('429 rate_limited');
  shop.advance(60);
  shop.script(id, good(id, 1));
  expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
});

test.each(postIds)('what is known of %s is told also while nothing may be sent', async (id) => {
  const shop = await openShop();
  shop.script(id, good(id, 1), json(500));
  await shop.keyed(id);
  await shop.keyed(id, { key: 'unknown' });
  shop.upstream.on(callOf('createApiKey'), json(500));
  for (let call = 0; call < FAILURES; call += 1) await shop.ask('createApiKey', { token: secret() });
  expect(gist(await shop.keyed(id, { key: 'another' }))).toBe('503 upstream_unavailable');
  expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
  expect(gist(await shop.keyed(id, { key: 'unknown' }))).toBe(UNKNOWN);
});

const fullOfRecords = async () => {
  const store = memoryStore(clockOfDeadlines());
  await fillWithRecords(store);
  return store;
};

describe('with no room for another record', () => {
  test.each(postIds)('%s with a key is refused before anything is sent', async (id) => {
    const shop = await openShop({}, { store: await fullOfRecords() });
    const answer = await shop.keyed(id);
    expect(gist(answer)).toBe('503 store_unavailable');
    expect(answer.headers['retry-after']).toBe('60');
    expect(shop.upstream.calls).toEqual([]);
  });

  test('everything else goes through', async () => {
    const shop = await openShop({}, { store: await fullOfRecords() });
    shop.script(READ, json(200, '{"id":1}'));
    expect((await shop.ask(READ)).status).toBe(200);
    for (const id of postIds) {
      shop.script(id, good(id, 1));
      expect(gist(await shop.ask(id))).toBe(goodGist(id, 1));
    }
  });
});

describe('with no room for another write of unknown outcome', () => {
  test.each(postIds)('%s is refused where it buys or invalidates what is cached, and goes through else', async (id) => {
    const shop = await openShop({}, { store: fullOfMarks(clockOfDeadlines()) });
    const isAnnounced = rowOf(id).exclusive || invalidatedReads(id).length > 0;
    if (!isAnnounced) shop.script(id, good(id, 1));
    expect(gist(await shop.ask(id))).toBe(isAnnounced ? '503 store_unavailable' : goodGist(id, 1));
    expect(shop.upstream.calls).toHaveLength(isAnnounced ? 0 : 1);
  });
});
