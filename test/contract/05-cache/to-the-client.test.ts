import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { hit, isHit, MISS, NO_CACHE, NO_STORE, openCache, seen } from './seen.ts';

everywhere(
  says('strong `ETag`, `If-None-Match` → 304, `Cache-Control: private, no-cache`, `Age`, `Vary`, `Cache-Status`'),
  async ({ ask, pass, upstream }) => {
    const first = await ask('getSubscription');
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[\x21\x23-\x7e]{16,}"$/);
    await pass(7);
    const same = await ask('getSubscription', { headers: { 'If-None-Match': etag } });
    expect([same.status, same.text, same.headers.get('content-type')]).toEqual([304, '', null]);
    expect(same.cache).toEqual(isHit);
    for (const { headers } of [first, same]) {
      expect([headers.get('etag'), headers.get('cache-control')]).toEqual([etag, 'private, no-cache']);
      expect(headers.get('vary')).toMatch(/^Authorization\b/);
    }
    expect(first.headers.get('age')).toBe('0');
    expect(Number(same.headers.get('age'))).toBeGreaterThanOrEqual(7);
    expect(upstream.calls).toHaveLength(1);
  },
  { time: true },
);

everywhere(
  says('`portico; hit; ttl=12`, `portico; fwd=miss; stored`, `portico; hit; ttl=-4` for an old copy'),
  async ({ ask, pass }) => {
    expect((await ask('getSubscription')).cache).toBe('portico; fwd=miss; stored');
    await pass(15);
    expect((await ask('getSubscription')).cache).toMatch(/^portico; hit; ttl=1\d$/);
    await pass(20);
    expect((await ask('getSubscription')).cache).toMatch(/^portico; hit; ttl=-\d+$/);
  },
  { time: true },
);

everywhere(says('`Cache-Control: no-cache` in a request gets a new copy, `no-store` none.'), async (stage) => {
  const ask = async (headers = {}) => {
    stage.upstream.change(stage.me);
    return seen(await stage.ask('getSubscription', { headers }));
  };
  expect(await ask(NO_STORE)).toEqual([200, 'portico; fwd=request', 2]);
  expect(await ask()).toEqual([200, MISS, 3]);
  expect(await ask(NO_STORE)).toEqual([200, 'portico; fwd=request', 4]);
  expect(await ask()).toEqual([200, isHit, 3]);
  expect(await ask(NO_CACHE)).toEqual([200, 'portico; fwd=request; stored', 6]); // others may have the older one
});

describe(says('`If-None-Match` → 304'), () => {
  test('for the tag, in each of the forms that RFC 9110 has for it, and for no other', async () => {
    const { ask, see, pass } = openCache();
    const etag = (await ask('getSubscription')).headers.get('etag') ?? '';
    await pass(7);
    for (const header of [etag, `W/${etag}`, `"other", ${etag} ,W/"x"`, '*']) {
      const { status, text, cache, headers } = await ask('getSubscription', { headers: { 'If-None-Match': header } });
      expect([header, status, text, cache, headers.get('age')]).toEqual([header, 304, '', hit(23), '7']);
      expect(headers.get('etag')).toBe(header.startsWith('W/') ? header : etag); // as the client has it
    }
    for (const header of ['"other"', `${etag.slice(0, -2)}"`, etag.slice(1, -1), ''])
      expect((await see('getSubscription', { headers: { 'If-None-Match': header } }))[0], header).toBe(200);
  });

  test('for what had to be fetched, too, and it never goes upstream; not for what is not kept', async () => {
    const { ask, upstream } = openCache();
    const etag = (await ask('getSubscription', { headers: NO_CACHE })).headers.get('etag') ?? '';
    const asked = { 'If-None-Match': etag };
    const again = await ask('getSubscription', { headers: { ...NO_CACHE, ...asked } });
    expect([again.status, again.cache]).toEqual([304, 'portico; fwd=request; stored']);
    const { status, headers: unkept } = await ask('getSubscription', { headers: { ...NO_STORE, ...asked } });
    expect([status, unkept.get('etag'), unkept.get('cache-control')]).toEqual([200, null, 'no-store']);
    for (const { headers } of upstream.calls) expect(headers).not.toHaveProperty('if-none-match');
  });
});

test(`${says('strong `ETag`')}: it changes with any byte, and comes back with the body`, async () => {
  const { ask, upstream } = openCache();
  const bodies = ['{"credits":25}', '{"credits":25.0}', '{"credits":25}'];
  upstream.next('getSubscription', ...bodies.map((body) => answer(200, body)));
  const tags: unknown[] = [];
  for (const _ of bodies) tags.push((await ask('getSubscription', { headers: NO_CACHE })).headers.get('etag'));
  expect(tags[1]).not.toBe(tags[0]);
  expect(tags[2]).toBe(tags[0]);
});
