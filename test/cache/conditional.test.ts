import { describe, expect, test } from 'vitest';
import { hit, MISS, NO_CACHE, NO_STORE, seen } from './helpers.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { cachedIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const OTHER = '"other"';

/** `If-None-Match` in the forms that RFC 9110 section 13.1.2 allows; it is compared weakly. */
const MATCHING: readonly (readonly [string, (etag: string) => string])[] = [
  ['the tag', (etag) => etag],
  ['the tag as a weak one', (etag) => `W/${etag}`],
  ['a list with the tag in it', (etag) => `${OTHER}, ${etag} ,W/"x"`],
  ['a star', () => '*'],
];

const DIFFERENT: readonly (readonly [string, (etag: string) => string])[] = [
  ['another tag', () => OTHER],
  ['a part of the tag', (etag) => `${etag.slice(0, -2)}"`],
  ['the tag without its quotes', (etag) => etag.slice(1, -1)],
  ['nothing', () => ''],
];

describe('If-None-Match', () => {
  test.each(MATCHING)('with %s is answered 304 without a body', async (_, header) => {
    const { upstream, ask, advance } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    const { etag = '' } = (await ask('getSubscription')).headers;
    advance(7);
    const answer = await ask('getSubscription', { headers: { 'If-None-Match': header(etag) } });
    expect([answer.status, answer.text]).toEqual([304, '']);
    const weak = `W/${etag}`;
    expect(answer.headers).toMatchObject({
      etag: header(etag).includes(weak) ? weak : etag, // as the client has it
      age: '7',
      'cache-status': hit(23),
      'cache-control': 'private, no-cache',
      vary: 'Authorization, Accept-Encoding',
    });
    expect(answer.headers).not.toHaveProperty('content-type');
  });

  test.each(DIFFERENT)('with %s is answered in full', async (_, header) => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    const { etag = '' } = (await ask('getSubscription')).headers;
    expect(seen(await ask('getSubscription', { headers: { 'If-None-Match': header(etag) } }))).toEqual([
      200,
      hit(30),
      1,
    ]);
  });

  test('holds for an answer that had to be fetched, and never goes upstream', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    const { etag = '' } = (await ask('getSubscription', { headers: NO_CACHE })).headers;
    const again = await ask('getSubscription', { headers: { ...NO_CACHE, 'If-None-Match': etag } });
    expect([again.status, again.headers['cache-status']]).toEqual([304, 'portico; fwd=request; stored']);
    for (const { headers } of upstream.calls) expect(headers).not.toHaveProperty('if-none-match');
  });

  test('means nothing for an answer that is not kept', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    const { etag = '' } = (await ask('getSubscription')).headers;
    const answer = await ask('getSubscription', { headers: { ...NO_STORE, 'If-None-Match': etag } });
    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty('etag');
  });

  test('works for HEAD', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
    const head = await ask('getSubscription', { method: 'HEAD' });
    expect([head.status, head.text, head.headers['cache-status']]).toEqual([200, '', MISS]);
    const { etag = '' } = head.headers;
    const again = await ask('getSubscription', { method: 'HEAD', headers: { 'If-None-Match': etag } });
    expect(again.status).toBe(304);
    expect(upstream.calls.map(({ method }) => method)).toEqual(['GET']);
  });
});

describe('the ETag', () => {
  test.each(cachedIds)('of %s is strong and changes with the body', async (id) => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1)), json(200, bodyOf(id, 2)), json(200, bodyOf(id, 1)));
    const tags: (string | undefined)[] = [];
    for (let i = 0; i < 3; i += 1) tags.push((await ask(id, { headers: NO_CACHE })).headers['etag']);
    expect(tags[0]).toMatch(/^"[\x21\x23-\x7e]{16,}"$/);
    expect(tags[1]).not.toBe(tags[0]);
    expect(tags[2]).toBe(tags[0]);
  });

  test('changes with a byte that means nothing', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, '{"free_credits":25}'), json(200, '{"free_credits":25.0}'));
    const before = await ask('getSubscription');
    const after = await ask('getSubscription', { headers: NO_CACHE });
    expect(after.headers['etag']).not.toBe(before.headers['etag']);
  });
});
