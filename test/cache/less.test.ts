import { describe, expect, test } from 'vitest';
import { cacheStatusOf, hit, MISS, NO_CACHE, seen, UNKEPT } from './helpers.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { bytes, httpResponse, json, type Step } from '../support/scripted-upstream.ts';
import { cachedIds, policyOf } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const ID = 'getSubscription';
const PATH = '/bff/v1/account-overview';

type Headers = Readonly<Record<string, string>>;

const saying = (cacheControl: string, headers: Headers = {}): Headers => ({
  'Cache-Control': cacheControl,
  ...headers,
});

const notModified = (headers: Headers): Step => bytes(httpResponse(304, '', headers));

/** An answer with these headers, and good ones without after it. */
const after = async (first: Step | Headers, ...others: readonly Step[]) => {
  const world = await openWorld();
  const step = typeof first === 'function' ? first : json(200, bodyOf(ID, 1), first);
  const rest = others.length > 0 ? others : [json(200, bodyOf(ID, 2)), json(200, bodyOf(ID, 3))];
  world.upstream.on(callOf(ID), step, ...rest);
  return world;
};

describe.each(cachedIds)('%s', (id) => {
  const { fresh, stale } = policyOf(id);

  test('is not stored where the upstream says no-store', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1), saying('no-store')), json(200, bodyOf(id, 2)));
    expect(seen(await ask(id))).toEqual([200, UNKEPT, 1]);
    expect(seen(await ask(id))).toEqual([200, MISS, 2]);
  });

  test('is fresh for as long as max-age says, and stale from then on', async () => {
    const { upstream, ask, advance, store } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1), saying('max-age=4')), json(200, bodyOf(id, 2)));
    expect(seen(await ask(id))).toEqual([200, MISS, 1]);
    expect(seen(await ask(id))).toEqual([200, hit(4), 1]);
    advance(6);
    const refreshed = store.saves.next();
    expect(seen(await ask(id))).toEqual([200, hit(-2), 1]);
    await refreshed;
    expect(seen(await ask(id))).toEqual([200, hit(fresh), 2]);
  });

  test('is too old to be stale when its time is up after max-age', async () => {
    const { upstream, ask, advance } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1), saying('max-age=4')), json(200, bodyOf(id, 2)));
    await ask(id);
    advance(4 + stale);
    expect(seen(await ask(id))).toEqual([200, 'portico; fwd=stale; stored', 2]);
  });

  test('is never fresh where the upstream says no-cache, and still stands in for a failure', async () => {
    const { upstream, ask, store } = await openWorld();
    upstream.on(
      callOf(id),
      json(200, bodyOf(id, 1), saying('no-cache')),
      json(200, bodyOf(id, 2), saying('no-cache')),
      json(503),
    );
    expect(seen(await ask(id))).toEqual([200, MISS, 1]);
    const refreshed = store.saves.next();
    expect(seen(await ask(id))).toEqual([200, hit(-1), 1]);
    await refreshed;
    expect(seen(await ask(id))).toEqual([200, hit(-1), 2]);
    expect(seen(await ask(id))).toEqual([200, hit(-1), 2]);
  });
});

describe('the upstream’s Cache-Control of', () => {
  test.each<readonly [name: string, headers: Headers, seconds: number]>([
    ['nothing', {}, 30],
    ['a max-age beyond ours', saying('max-age=3600'), 30],
    ['a max-age without an end', saying(`max-age=${'9'.repeat(400)}`), 30],
    ['a max-age below ours', saying('max-age=7'), 7],
    ['a max-age less its Age', saying('max-age=20', { Age: '8' }), 12],
    ['a max-age beyond ours less its Age', saying('max-age=3600', { Age: '3590' }), 10],
    ['a max-age and an Age that is none', saying('max-age=20', { Age: 'old' }), 20],
    ['a max-age and an Age of less than nothing', saying('max-age=20', { Age: '-8' }), 20],
    ['an Age alone', { Age: '20' }, 30],
    ['capitals', saying('Private, MAX-AGE=7'), 7],
    ['a quoted value', saying('max-age="7"'), 7],
    ['two, of which the least counts', saying('max-age=9, max-age=7'), 7],
    ['no space', saying('private,max-age=7,must-revalidate'), 7],
    ['what is meant for shared caches', saying('s-maxage=0, public, proxy-revalidate, private'), 30],
    ['a max-age for us and one for shared caches', saying('s-maxage=0, max-age=7'), 7],
    ['a max-age without a value', saying('max-age, max-age=, max-age=""'), 30],
    ['a max-age that is none', saying('max-age=soon, max-age=1.5, max-age=0x0'), 30],
    ['words within a quoted value', saying('x="no-cache, max-age=1, no-store", max-age=7'), 7],
    ['a quote without an end', saying('x="no-store, max-age=7'), 7],
    ['longer words', saying('x-no-store, no-store-x, no-cached, max-age-x=1'), 30],
  ])('%s', async (_, headers, seconds) => {
    const { ask } = await after(headers);
    await ask(ID);
    expect(seen(await ask(ID))).toEqual([200, hit(seconds), 1]);
  });

  test.each<readonly [name: string, headers: Headers]>([
    ['max-age=0', saying('max-age=0')],
    ['less than nothing', saying('max-age=-1')],
    ['an Age beyond max-age', saying('max-age=5', { Age: '9' })],
    ['no-cache beside a max-age', saying('max-age=20, no-cache')],
    ['no-cache of some fields', saying('no-cache="Set-Cookie"')],
    ['NO-CACHE', saying('NO-CACHE')],
  ])('%s leaves nothing fresh', async (_, headers) => {
    const { ask } = await after(headers);
    await ask(ID);
    expect(seen(await ask(ID))).toEqual([200, hit(-1), 1]);
  });

  test.each(['no-store', 'No-Store', 'max-age=60, no-store', 'no-store=1', 'private,no-store,no-cache'])(
    '%s leaves nothing stored',
    async (value) => {
      const { ask } = await after(saying(value));
      expect(seen(await ask(ID))).toEqual([200, UNKEPT, 1]);
      expect(seen(await ask(ID))).toEqual([200, MISS, 2]);
    },
  );

  test('two headers counts as one', async () => {
    const body = bodyOf(ID, 1);
    const head =
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: private\r\nCache-Control: max-age=7';
    const { ask } = await after(bytes(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`));
    await ask(ID);
    expect(seen(await ask(ID))).toEqual([200, hit(7), 1]);
  });
});

test('no-store on a refresh takes the older copy away', async () => {
  const { ask, advance, store } = await after({}, json(200, bodyOf(ID, 2), saying('no-store')), json(503));
  await ask(ID);
  advance(31);
  const dropped = store.drops.next();
  expect(seen(await ask(ID))).toEqual([200, hit(-1), 1]);
  await dropped;
  expect(await ask(ID)).toMatchObject({ status: 503 });
});

test('who says no-cache gets an answer that is not stored either', async () => {
  const { ask } = await after({}, json(200, bodyOf(ID, 2), saying('no-store')));
  await ask(ID);
  expect(seen(await ask(ID, { headers: NO_CACHE }))).toEqual([200, 'portico; fwd=request', 2]);
});

describe('a 304', () => {
  const UP = { ETag: '"upstream-1"' };

  test.each<readonly [name: string, headers: Headers, seconds: number]>([
    ['that says nothing leaves what was said', UP, 7],
    ['that asks for less applies', saying('max-age=3', UP), 3],
    ['that asks for more than before applies', saying('max-age=12', UP), 12],
    ['that lets it be as old as we like applies', saying('max-age=3600', UP), 30],
  ])('%s', async (_, headers, seconds) => {
    const { ask, advance } = await after(saying('max-age=7', UP), notModified(headers));
    await ask(ID);
    advance(400);
    expect(seen(await ask(ID))).toEqual([200, 'portico; fwd=stale; stored', 1]);
    expect(seen(await ask(ID))).toEqual([200, hit(seconds), 1]);
  });

  test('that says no-store is answered from the copy once more', async () => {
    const { ask, advance } = await after(
      saying('max-age=7', UP),
      notModified(saying('no-store', UP)),
      json(200, bodyOf(ID, 2)),
    );
    await ask(ID);
    advance(400);
    expect(seen(await ask(ID))).toEqual([200, 'portico; fwd=stale', 1]);
    expect(seen(await ask(ID))).toEqual([200, MISS, 2]);
  });
});

test('sections of an overview go by it too', async () => {
  const world = await openWorld();
  world.answerAll();
  world.upstream.on(callOf(ID), json(200, bodyOf(ID, 1), saying('max-age=2')));
  const ask = () => world.call({ path: PATH, token: world.token });
  await ask();
  expect(cacheStatusOf(await ask())).toBe(hit(2));
});

test('an operation that is never cached is not by what the upstream says', async () => {
  const { upstream, ask } = await openWorld();
  const id = 'getPendingPayment';
  upstream.on(callOf(id), json(200, bodyOf(id, 1), saying('max-age=60')), json(200, bodyOf(id, 2)));
  await ask(id);
  expect(seen(await ask(id))).toEqual([200, 'portico; fwd=bypass', 2]);
});
