import { describe, expect, test } from 'vitest';
import { operations } from '../support/account-api.ts';
import { dataText, freshMeta, holdAll, type LegScript, legsOf, overviewTable, openOverviews } from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { exampleBody } from '../support/examples.ts';
import { call } from '../support/http.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const isPage = ({ operation, isCard }: LegScript) => 'paged' in operations[operation] && !isCard;

const linkOf = ({ path: at }: LegScript, page: number) => `${at.split('?')[0]}?page=${page}&x=a%20b`;

const changed = (text: string) => text.replace('9007199254740993123', '9007199254740993124');

describe.each(overviewTable)('GET %s', (path, overview) => {
  const legs = legsOf(overview);
  const names = legs.map(({ section }) => section);

  test('answers every section in order, value for value what the upstream sent', async () => {
    const { get, upstream } = await openOverviews();
    const { status, headers, text, body } = await get(path);
    expect(status).toBe(200);
    expect(text.startsWith(`{"data":${dataText(legs)},"errors":[],"meta":{`)).toBe(true);
    expect(text).toContain('9007199254740993123');
    expect(text).toContain('2.50');
    expect(body.meta).toEqual(freshMeta(legs));
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'private, no-cache',
      'cache-status': 'portico; fwd=miss',
      age: '0',
      etag: expect.stringMatching(/^"[^"]+"$/) as string,
      vary: expect.stringContaining('Authorization') as string,
    });
    expect(upstream.calls).toHaveLength(legs.length);
  });

  test('takes one round trip when cold: every call is under way before any is answered', async () => {
    const world = await openOverviews();
    const gate = holdAll(world, legs);
    const pending = world.get(path);
    const calls = await world.upstream.waitForCalls(legs.length);
    expect(calls.map(({ target }) => target).toSorted()).toEqual(legs.map((leg) => leg.path).toSorted());
    gate.release();
    expect((await pending).body.meta.complete).toBe(true);
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('costs nothing the second time', async () => {
    const { get, upstream } = await openOverviews();
    const first = await get(path);
    const second = await get(path);
    expect(upstream.calls).toHaveLength(legs.length);
    expect(second.headers['cache-status']).toMatch(/^portico; hit; ttl=\d+$/);
    expect(second.headers['etag']).toBe(first.headers['etag']);
    expect(second.body.data).toEqual(first.body.data);
  });

  test('is served by what pass-through reads left in the cache', async () => {
    const { get, upstream } = await openOverviews();
    for (const leg of legs) await get(leg.path);
    const answer = await get(path);
    expect(upstream.calls).toHaveLength(legs.length);
    expect(answer.headers['cache-status']).toMatch(/^portico; hit; /);
    expect(answer.text).toContain(dataText(legs));
  });

  test('leaves in the cache what pass-through reads are served by', async () => {
    const { get, upstream } = await openOverviews();
    await get(path);
    for (const leg of legs) {
      const read = await get(leg.path);
      expect(read.headers['cache-status']).toMatch(/^portico; hit; /);
      expect(read.text).toBe(leg.upstream);
    }
    expect(upstream.calls).toHaveLength(legs.length);
  });

  test.runIf(legs.length > 1).each(legs.map((leg) => [leg.section, leg] as const))(
    'asks only for the rest when %s is held',
    async (_, leg) => {
      const { get, upstream } = await openOverviews();
      // What names the card is held too, so the card is asked for by its id: see card.test.ts.
      upstream.on('GET /api/v2/payment/method/1071/', json(200, exampleBody('getPaymentMethod')));
      await get(leg.path);
      const { text, headers } = await get(path);
      expect(upstream.callsTo(`GET ${leg.path}`)).toHaveLength(1);
      expect(upstream.calls).toHaveLength(legs.length);
      expect(text).toContain(dataText(legs));
      expect(headers['cache-status']).toBe('portico; fwd=miss');
    },
  );

  test.each([
    ['the origin of the request', {}],
    ['PUBLIC_URL', { PUBLIC_URL: 'https://portico.example' }],
  ])('points the links of pages at %s', async (_, env: Readonly<Record<string, string>>) => {
    const world = await openOverviews(env);
    const pages = legs.filter(isPage);
    for (const leg of pages) {
      const links = { next: world.upstream.url + linkOf(leg, 3), previous: world.upstream.url + linkOf(leg, 1) };
      world.on(leg, json(200, exampleBody(leg.operation, links)));
    }
    const { body, text } = await world.get(path);
    const origin = env['PUBLIC_URL'] ?? world.gateway.url;
    expect(text.match(/"results":\[/g) ?? []).toHaveLength(pages.length);
    for (const leg of pages) {
      expect(body.data[leg.section]).toMatchObject({
        next: origin + linkOf(leg, 3),
        previous: origin + linkOf(leg, 1),
      });
    }
    expect(text).not.toContain(world.upstream.url);
  });

  test('times every leg and the whole in Server-Timing', async () => {
    const { get } = await openOverviews();
    const { headers } = await get(path);
    const timed = headers['server-timing']?.split(', ').map((entry) => entry.split(';')[0]);
    expect(timed).toEqual([...names, 'total']);
  });

  test('is as old as its oldest section', async () => {
    const clock = manualClock();
    const { get } = await openOverviews({}, { clock });
    const oldest = legs.at(-1)!;
    await get(oldest.path);
    clock.advance(4000);
    const { headers, body } = await get(path);
    expect(headers['age']).toBe('4');
    const ages = Object.fromEntries(Object.entries(body.meta.sections).map(([name, { age }]) => [name, age]));
    expect(ages).toEqual({ ...Object.fromEntries(names.map((name) => [name, 0])), [oldest.section]: 4 });
  });

  test('is a 304 while its data stay the same, whatever the ages', async () => {
    const clock = manualClock();
    const { get, upstream } = await openOverviews({}, { clock });
    const etag = (await get(path)).headers['etag']!;
    clock.advance(5000);
    for (const candidate of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await get(path, { headers: { 'If-None-Match': candidate } });
      expect(again).toMatchObject({ status: 304, text: '' });
      const own = candidate === `W/${etag}` ? candidate : etag; // as the client has it
      expect(again.headers).toMatchObject({ etag: own, age: '5', 'cache-control': 'private, no-cache' });
      expect(again.headers['content-type']).toBeUndefined();
    }
    clock.advance(300); // Asked for afresh, the data are what they were.
    const fresh = { 'Cache-Control': 'no-cache', 'If-None-Match': etag };
    expect(await get(path, { headers: fresh })).toMatchObject({ status: 304, headers: { age: '0' } });
    expect(upstream.calls).toHaveLength(2 * legs.length);
    expect((await get(path, { headers: { 'If-None-Match': '"other"' } })).status).toBe(200);
  });

  test.each(legs.map((leg) => [leg.section, leg] as const))('has another ETag when %s changes', async (_, leg) => {
    const world = await openOverviews();
    const first = await world.get(path);
    world.on(leg, json(200, changed(leg.upstream)));
    const headers = { 'Cache-Control': 'no-cache', 'If-None-Match': first.headers['etag']! };
    const second = await world.get(path, { headers });
    expect(second.status).toBe(200);
    expect(second.headers['etag']).not.toBe(first.headers['etag']);
    expect(second.text).toContain('9007199254740993124');
  });

  test('asks again for no-cache and keeps that; neither asks the cache nor fills it for no-store', async () => {
    const { get, upstream } = await openOverviews();
    await get(path, { headers: { 'Cache-Control': 'no-store' } });
    expect(upstream.calls).toHaveLength(legs.length);
    await get(path);
    expect(upstream.calls).toHaveLength(2 * legs.length);
    await get(path, { headers: { 'Cache-Control': 'no-cache' } });
    expect(upstream.calls).toHaveLength(3 * legs.length);
    await get(path);
    expect(upstream.calls).toHaveLength(3 * legs.length);
    await get(path, { headers: { 'Cache-Control': 'no-store' } });
    expect(upstream.calls).toHaveLength(4 * legs.length);
  });

  test('costs one call a leg, however many ask at once', async () => {
    const world = await openOverviews();
    const gate = holdAll(world, legs);
    const looked = world.store.lookups.next(10 * legs.length);
    const pending = Array.from({ length: 10 }, () => world.get(path));
    await Promise.all([world.upstream.waitForCalls(legs.length), looked]);
    gate.release();
    const texts = (await Promise.all(pending)).map(({ text }) => text.startsWith(`{"data":${dataText(legs)}`));
    expect(texts).toEqual(Array(10).fill(true));
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('keeps accounts apart, and wants a credential', async () => {
    const { get, gateway, upstream, token } = await openOverviews();
    const other = secret();
    await get(path);
    await get(path, { token: other });
    const credentials = upstream.calls.map(({ headers }) => headers['authorization']);
    expect(credentials).toEqual([...legs.map(() => `Token ${token}`), ...legs.map(() => `Token ${other}`)]);
    const anonymous = await call(gateway.url, { path });
    expect(anonymous).toMatchObject({ status: 401, json: { code: 'unauthenticated', instance: path } });
    expect(upstream.calls).toHaveLength(2 * legs.length);
  });

  test('answers HEAD with the head alone, and nothing but GET and HEAD', async () => {
    const { get, upstream } = await openOverviews();
    const { headers } = await get(path);
    const head = await get(path, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '', headers: { etag: headers['etag'] } });
    const post = await get(path, { method: 'POST' });
    expect(post).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' }, json: { code: 'method_not_allowed' } });
    expect(upstream.calls).toHaveLength(legs.length);
  });
});
