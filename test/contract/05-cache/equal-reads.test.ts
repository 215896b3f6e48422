import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { Answer } from '../../../src/entry/node/server/traffic.ts';
import { says } from '../../support/contract.ts';
import { openDoubles } from '../../support/fleet.ts';
import type { Asking } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { beginOn, hit, isHit, MISS, NO_CACHE, NO_STORE, openCache, seen, UNKEPT } from './seen.ts';

const ID = 'getSubscription';
const JOINED = [200, `${MISS}; collapsed`, 1];

everywhere(
  says('Equal reads of an account at one time cost one call of the upstream an instance'),
  async (stage) => {
    const first = await beginOn(stage, ID);
    const others = Array.from({ length: 30 }, () => stage.ask(ID));
    expect(await first.end()).toEqual([200, MISS, 1]);
    for (const { version } of await Promise.all(others)) expect(version).toBe(1);
    expect(stage.upstream.calls).toHaveLength(1);
  },
  { not: ['fleet'] }, // one of each instance: the next test
);

test(`${says('cost one call of the upstream an instance')}: of two, two`, async () => {
  const { upstream, instances, clock } = openDoubles();
  const token = secret();
  const held = instances.map(() => upstream.hold(ID));
  const reads = instances.flatMap(({ ask }) => [ask(ID, { token }), ask(ID, { token })]);
  await Promise.all(held.map(({ call }) => call));
  await clock.pass(0); // all have joined
  for (const one of held) one.release();
  const joined = (await Promise.all(reads)).map(({ version, cache }) => [version, cache?.includes('collapsed')]);
  expect(joined).toEqual([false, true, false, true].map((isJoined) => [1, isJoined]));
  expect(upstream.calls).toHaveLength(2);
});

everywhere(
  `${says('Equal reads of an account')}: different readers have their own answers`,
  async ({ ask, upstream }) => {
    const tokens = Array.from({ length: 50 }, () => secret());
    for (const [n, token] of tokens.entries()) for (let changes = 0; changes < n; changes++) upstream.change(token);
    const answers = await Promise.all(tokens.map((token) => ask(ID, { token })));
    expect(answers.map(({ version }) => version)).toEqual(tokens.map((_, n) => n + 1));
  },
);

describe(`${says('Equal reads of an account at one time')}, ${says('`collapsed` for a joined call')}`, () => {
  test('a thousand, and batches, overviews and paths without their slash', async () => {
    const { call, see, begin, pass, upstream } = openCache();
    const first = await begin(ID);
    const others = Array.from({ length: 1_000 }, (_, n) => see(ID, n % 2 ? { path: '/api/v2/subscription' } : {}));
    const requests = ['a', 'b'].map((id) => ({ id, path: '/api/v2/subscription/' }));
    const composed = [call('/bff/v1/batch', { body: { requests } }), call('/bff/v1/account-overview')];
    await pass(0);
    expect(await first.end()).toEqual([200, MISS, 1]);
    for (const other of others) expect(await other).toEqual(JOINED);
    for (const one of composed) expect((await one).text).toContain('"x_version":1');
    expect(upstream.callsTo(ID)).toHaveLength(1);
  });

  test('of what is never cached share the call under way, but no later one', async () => {
    const { see, begin, pass, upstream, me } = openCache();
    const first = await begin('getPendingPayment');
    const second = see('getPendingPayment');
    await pass(0);
    upstream.change(me);
    expect(await first.end()).toEqual([200, 'portico; fwd=bypass', 1]);
    expect(await second).toEqual([200, 'portico; fwd=bypass; collapsed', 1]);
    expect(await see('getPendingPayment')).toEqual([200, 'portico; fwd=bypass', 2]);
  });

  test('have a 503 all together, each with a request id of its own; the next tries again', async () => {
    const { ask, see, begin, pass, upstream } = openCache();
    const first = await begin(ID);
    const others = Array.from({ length: 5 }, () => ask(ID));
    await pass(0);
    upstream.next(ID, answer(503), answer(503)); // tried again
    expect(await first.end(answer(503))).toEqual([503, null, undefined]);
    const answers = await Promise.all(others);
    for (const other of answers) expect(other.status).toBe(503);
    expect(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size).toBe(5);
    expect(await see(ID)).toEqual([200, MISS, 1]);
  });

  test('are not those of other accounts, ids, queries and wishes', async () => {
    const { ask, pass, upstream } = openCache();
    const noStore = { headers: { ...NO_STORE, 'X-Request-Id': 'one' } };
    const unequal: readonly Asking[] = [
      {},
      { token: secret() },
      ...['2/', '012345/', '12345/?plan_id=1'].map((end) => ({ path: `/api/v2/subuser/${end}` })),
      { headers: NO_CACHE },
      noStore,
      noStore,
    ];
    const held = unequal.map(() => upstream.hold('getSubuser'));
    const asked = unequal.map((asking) => ask('getSubuser', asking));
    await pass(0);
    expect(upstream.calls).toHaveLength(unequal.length);
    for (const [n, one] of held.entries()) one.release(answer(200, `{"x_version":${n}}`));
    const answers = await Promise.all(asked);
    expect(new Set(answers.map(({ version }) => version)).size).toBe(unequal.length);
    for (const { cache } of answers) expect(cache).not.toContain('collapsed');
  });

  test('who says no-cache joins no ordinary call, but those who say so too', async () => {
    const { see, begin, pass, upstream, me } = openCache();
    const ordinary = await begin(ID);
    upstream.change(me);
    const fresh = await begin(ID, { headers: NO_CACHE });
    const second = see(ID, { headers: NO_CACHE });
    await pass(0);
    expect(await ordinary.end()).toEqual([200, MISS, 1]);
    expect(await fresh.end()).toEqual([200, 'portico; fwd=request; stored', 2]);
    expect(await second).toEqual([200, 'portico; fwd=request; stored; collapsed', 2]);
    expect(await see(ID)).toEqual([200, hit(30), 2]);
  });

  test('an ordinary call from before replaces nothing of what who said no-cache got', async () => {
    const { see, begin, pass, upstream, me } = openCache();
    const ordinary = await begin(ID);
    await pass(0.001);
    upstream.change(me);
    expect((await see(ID, { headers: NO_CACHE }))[0]).toBe(200);
    await ordinary.end();
    expect(await see(ID)).toEqual([200, hit(30), 2]);
  });
});

test(says('(each its own where a shared store does not answer'), async () => {
  const { a, upstream } = openDoubles();
  a.shelf.isAway = true;
  for (const id of ['getReferralConfig', 'getPendingPayment'] as const) {
    const held = [upstream.hold(id), upstream.hold(id)];
    const reads = [a.ask(id), a.ask(id)];
    for (const { call } of held) await call;
    for (const one of held) one.release();
    for (const { cache } of await Promise.all(reads)) expect(cache).not.toContain('collapsed');
  }
});

everywhere(says('and while a write that touches them is under way'), async (stage) => {
  const write = await beginOn(stage, 'updateReferralConfig');
  const reads = [await beginOn(stage, 'getReferralConfig'), await beginOn(stage, 'getReferralConfig')];
  for (const { end } of reads) expect(await end()).toEqual([200, UNKEPT, 1]);
  await write.end();
  expect(seen(await stage.ask('getReferralConfig'))).toEqual([200, MISS, 2]);
});

/** A worker hears of it by a reset of the connection alone: test/worker. */
const NOT_ON_WORKERD = { not: ['workerd'] } as const;

everywhere(
  says('Who leaves does not end it for the others'),
  async (stage) => {
    const client = new AbortController();
    const first = await beginOn(stage, ID, { signal: client.signal });
    const others = Array.from({ length: 5 }, () => stage.ask(ID));
    await stage.pass(0); // in process all have joined; on sockets who comes late makes a call of its own
    client.abort();
    await stage.pass(0);
    await first.end();
    for (const { status, version } of await Promise.all(others)) expect([status, version]).toEqual([200, 1]);
    expect(seen(await stage.ask(ID))).toEqual([200, isHit, 1]);
  },
  NOT_ON_WORKERD,
);

test.each([0, 1])(
  `${says('Who leaves does not end it')}: nor the refresh behind a stale copy, with %i others who have joined it`,
  async (others) => {
    const { ask, see, pass, upstream, me } = openCache();
    await see(ID);
    await pass(329);
    upstream.change(me);
    const held = upstream.hold(ID);
    expect(await see(ID)).toEqual([200, hit(-299), 1]);
    await pass(1);
    const client = new AbortController();
    const left = ask(ID, { signal: client.signal }).catch(() => undefined);
    const late = Array.from({ length: others }, () => see(ID));
    await pass(0);
    client.abort();
    await pass(0);
    held.release();
    await left;
    for (const one of late) expect(await one).toEqual([200, 'portico; fwd=stale; stored; collapsed', 2]);
    await pass(0);
    expect(await see(ID)).toEqual([200, hit(30), 2]);
  },
);

everywhere(
  says('when the last leaves it is cancelled.'),
  async (stage) => {
    const client = new AbortController();
    const { left, end } = await beginOn(stage, ID, { signal: client.signal });
    client.abort();
    await left;
    await end();
    expect(seen(await stage.ask(ID))).toEqual([200, MISS, 1]);
    expect(stage.upstream.calls).toHaveLength(2);
  },
  NOT_ON_WORKERD,
);

test(`${says('when the last leaves it is cancelled.')}: a host that asks the app leaves by its own signal`, async () => {
  const { app, upstream, me } = openCache();
  const held = upstream.hold(ID);
  const own = new AbortController();
  const outgoing = new Answer(new IncomingMessage(new Socket())); // of the host's client, who stays
  const init = { signal: own.signal, headers: { Authorization: `Token ${me}` } };
  const asked = app.request('/api/v2/subscription/', init, { outgoing });
  const { left } = await held.call;
  own.abort();
  await left;
  expect((await asked).status).toBe(499);
});

test(`${says('when the last leaves it is cancelled.')}: and not before`, async () => {
  const { ask, begin, pass, upstream } = openCache();
  const [one, other] = [new AbortController(), new AbortController()];
  const first = await begin(ID, { headers: NO_CACHE, signal: one.signal });
  const second = ask(ID, { headers: NO_CACHE, signal: other.signal }).catch(() => undefined);
  let isLeft = false;
  void first.left.then(() => (isLeft = true));
  await pass(0);
  for (const client of [one, other]) {
    client.abort();
    await pass(0);
    expect(isLeft).toBe(client === other);
  }
  await Promise.all([first.end(), second]);
  expect(upstream.calls).toHaveLength(1);
});
