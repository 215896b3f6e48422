import { describe, expect, test } from 'vitest';
import type { Snapshot } from '../../src/store/port.ts';
import type { OperationId } from '../support/account-api.ts';
import { hit, holdFirst, MISS, NO_CACHE, NO_STORE, seen, requestOf } from './helpers.ts';
import type { TextAnswer } from '../support/http.ts';
import { clockOfDeadlines, manualClock } from '../support/clock.ts';
import { bodyOf, callOf, isCallTo, pathOf } from '../support/marked.ts';
import { openSocket } from '../support/raw-client.ts';
import { barrier, hold, json, perCall, reply, reset } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore, sharedStores } from '../support/stores.ts';
import { cachedIds, readIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const ID: OperationId = 'getSubscription';
const JOINED = `${MISS}; collapsed`;

/** Who began the call first, then those who joined it. */
const inOrder = (answers: readonly TextAnswer[]) =>
  answers.map(seen).toSorted(([, a], [, b]) => String(a).length - String(b).length);

/** Starts requests, and comes back when all of them wait for a call. */
const begin = async <T>({ store }: World, count: number, start: () => Promise<T>): Promise<Promise<T>[]> => {
  const waiting = store.lookups.next(count);
  const begun = Array.from({ length: count }, start);
  await waiting;
  return begun;
};

describe('equal reads at once', () => {
  test('1,000 of them on as many connections are one upstream call', async () => {
    const world = await openWorld();
    const gate = barrier();
    holdFirst(world, ID, gate);
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => openSocket(world.gateway.port)));
    const waiting = world.store.lookups.next(1000);
    await Promise.all(sockets.map((socket) => socket.write(requestOf(world, ID))));
    await waiting;
    gate.release();
    const answers = await Promise.all(sockets.map((socket) => socket.readResponse()));
    for (const socket of sockets) socket.destroy();
    const statuses = answers.map(({ headers }) => String(headers['cache-status']));
    expect(new Set(statuses)).toEqual(new Set([MISS, JOINED]));
    expect(statuses.filter((status) => status === MISS)).toHaveLength(1);
    expect(new Set(answers.map(({ body }) => body))).toEqual(new Set([bodyOf(ID, 1)]));
    expect(world.upstream.calls).toHaveLength(1);
  });

  test.each(cachedIds)('of %s share a call, and so do batches and overviews', async (id) => {
    const world = await openWorld();
    const gate = barrier();
    holdFirst(world, id, gate);
    const [first] = await begin(world, 1, () => world.ask(id));
    await gate.reached;
    const others = await begin(world, 3, () => world.ask(id));
    const body = {
      requests: [
        { id: 'a', path: pathOf(id) },
        { id: 'b', path: pathOf(id) },
      ],
    };
    const waiting = world.store.lookups.next(); // equal items are one read
    const batch = world.ask(id, { method: 'POST', path: '/bff/v1/batch', body });
    await waiting;
    gate.release();
    expect(seen((await first)!)).toEqual([200, MISS, 1]);
    for (const other of others) expect(seen(await other)).toEqual([200, JOINED, 1]);
    expect(await batch).toMatchObject({ status: 200, json: { responses: [{ status: 200 }, { status: 200 }] } });
    expect(world.upstream.calls).toHaveLength(1);
  });

  test('of a thing that is never cached share the call under way, but no later one', async () => {
    const clock = clockOfDeadlines();
    const world = await openWorld({}, { clock, store: memoryStore(clock) });
    const gate = barrier();
    holdFirst(world, 'getPendingPayment', gate);
    const both = await begin(world, 2, () => world.ask('getPendingPayment'));
    gate.release();
    const answers = await Promise.all(both);
    expect(inOrder(answers)).toEqual([
      [200, 'portico; fwd=bypass', 1],
      [200, 'portico; fwd=bypass; collapsed', 1],
    ]);
    expect(seen(await world.ask('getPendingPayment'))).toEqual([200, 'portico; fwd=bypass', 2]);
  });

  test('of a thing that is never cached are calls of their own where a shared store would have to be asked', async () => {
    const clock = clockOfDeadlines();
    const world = await openWorld({}, { clock, store: sharedStores(clock).store });
    const gate = barrier();
    holdFirst(world, 'getPendingPayment', gate);
    const both = await begin(world, 2, () => world.ask('getPendingPayment'));
    await gate.reached;
    gate.release();
    const answers = await Promise.all(both);
    expect(answers.map(seen).toSorted(([, , a], [, , b]) => Number(a) - Number(b))).toEqual([
      [200, 'portico; fwd=bypass', 1],
      [200, 'portico; fwd=bypass', 2],
    ]);
  });

  test('share a refresh with those who wait for one', async () => {
    const world = await openWorld();
    const gate = barrier();
    world.upstream.on(callOf(ID), json(200, bodyOf(ID, 1)), reply(hold(gate), json(200, bodyOf(ID, 2))));
    await world.ask(ID);
    world.advance(329);
    expect(seen(await world.ask(ID))).toEqual([200, hit(-299), 1]);
    await gate.reached;
    world.advance(1);
    const [late] = await begin(world, 1, () => world.ask(ID));
    gate.release();
    expect(seen((await late)!)).toEqual([200, 'portico; fwd=stale; stored; collapsed', 2]);
    expect(world.upstream.calls).toHaveLength(2);
  });
});

const UNEQUAL: readonly (readonly [string, (world: World) => Parameters<World['ask']>[1]])[] = [
  ['another account', () => ({ token: secret() })],
  ['another id', () => ({ path: '/api/v2/subuser/2/' })],
  ['an id of other digits', () => ({ path: '/api/v2/subuser/012345/' })],
  ['a query', () => ({ path: '/api/v2/subuser/12345/?plan_id=1' })],
  ['another query', () => ({ path: '/api/v2/subuser/12345/?plan_id=2' })],
  ['the same query in another form', () => ({ path: '/api/v2/subuser/12345/?plan_id=%31' })],
  ['no-cache', () => ({ headers: NO_CACHE })],
  ['no-store', () => ({ headers: NO_STORE })],
  ['no-store as well', () => ({ headers: NO_STORE })],
];

describe('never share', () => {
  test('readers of different accounts, ids, queries and wishes', async () => {
    const world = await openWorld();
    const gate = barrier();
    let calls = 0;
    world.upstream.on(
      isCallTo('getSubuser'),
      perCall(() => reply(hold(gate), json(200, bodyOf('getSubuser', ++calls)))),
    );
    const all = [undefined, ...UNEQUAL.map(([, options]) => options(world))].map((options) =>
      world.ask('getSubuser', options),
    );
    await gate.count(all.length);
    gate.release();
    const answers = await Promise.all(all);
    expect(new Set(answers.map((answer) => seen(answer)[2])).size).toBe(all.length);
    for (const answer of answers) expect(answer.headers['cache-status']).not.toContain('collapsed');
  });

  test.each(readIds)('readers of %s with no-store, though they send the same request id', async (id) => {
    const world = await openWorld();
    const gate = barrier();
    let calls = 0;
    world.upstream.on(
      isCallTo(id),
      perCall(() => reply(hold(gate), json(200, bodyOf(id, ++calls)))),
    );
    const headers = { ...NO_STORE, 'X-Request-Id': 'the-same-for-all' };
    const both = [world.ask(id, { headers }), world.ask(id, { headers })];
    await gate.count(both.length);
    gate.release();
    const answers = (await Promise.all(both)).map(seen);
    for (const [status, cacheStatus] of answers) expect([status, cacheStatus]).toEqual([200, 'portico; fwd=request']);
    expect(world.upstream.calls).toHaveLength(both.length);
  });

  test('readers of different accounts, whatever the store says of their versions', async () => {
    const forgetful: Snapshot = {
      use: undefined,
      session: undefined,
      copy: () => undefined,
      lookup: async () => ({ entry: undefined, version: 'the same for all', askedAt: 0 }),
      holds: () => true,
      save: async () => ({ stored: false, holds: true }),
    };
    const store = Object.assign(memoryStore(manualClock()), { snapshot: async () => forgetful });
    const world = await openWorld({}, { store });
    const gate = barrier();
    let calls = 0;
    world.upstream.on(
      callOf(ID),
      perCall(() => reply(hold(gate), json(200, bodyOf(ID, ++calls)))),
    );
    const all = [secret(), secret(), secret()].map((token) => world.ask(ID, { token }));
    await gate.count(all.length);
    gate.release();
    for (const answer of await Promise.all(all)) expect(answer.headers['cache-status']).toBe('portico; fwd=miss');
  });

  test('readers without a slash share with those who have one', async () => {
    const world = await openWorld();
    const gate = barrier();
    holdFirst(world, ID, gate);
    const [first] = await begin(world, 1, () => world.ask(ID));
    const [second] = await begin(world, 1, () => world.ask(ID, { path: pathOf(ID).slice(0, -1) }));
    gate.release();
    expect([seen((await first)!), seen((await second)!)]).toEqual([
      [200, MISS, 1],
      [200, JOINED, 1],
    ]);
  });

  test('who says no-cache does not join an ordinary call, but those who say so too', async () => {
    const world = await openWorld();
    const [ordinaryGate, freshGate] = [barrier(), barrier()];
    const answers = [
      reply(hold(ordinaryGate), json(200, bodyOf(ID, 1))),
      reply(hold(freshGate), json(200, bodyOf(ID, 2))),
    ];
    world.upstream.on(callOf(ID), ...answers);
    const [ordinary] = await begin(world, 1, () => world.ask(ID));
    await ordinaryGate.reached;
    const fresh = await begin(world, 2, () => world.ask(ID, { headers: NO_CACHE }));
    await freshGate.reached;
    ordinaryGate.release();
    expect(seen((await ordinary)!)).toEqual([200, MISS, 1]);
    freshGate.release();
    expect(inOrder(await Promise.all(fresh))).toEqual([
      [200, 'portico; fwd=request; stored', 2],
      [200, 'portico; fwd=request; stored; collapsed', 2],
    ]);
    expect(seen(await world.ask(ID))).toEqual([200, hit(30), 2]);
  });

  test('the fresh copy of who said no-cache is not replaced by an ordinary call from before it', async () => {
    const world = await openWorld();
    const gate = barrier();
    holdFirst(world, ID, gate);
    const [ordinary] = await begin(world, 1, () => world.ask(ID));
    await gate.reached;
    world.advance(0.001);
    expect(seen(await world.ask(ID, { headers: NO_CACHE }))).toEqual([200, 'portico; fwd=request; stored', 2]);
    gate.release();
    await ordinary;
    expect(seen(await world.ask(ID))).toEqual([200, hit(30), 2]);
  });

  test('what is known to be gone does not come back with an ordinary call from before that', async () => {
    const world = await openWorld();
    const gate = barrier();
    world.upstream.on(callOf(ID), reply(hold(gate), json(200, bodyOf(ID, 1))), json(404));
    const [ordinary] = await begin(world, 1, () => world.ask(ID));
    await gate.reached;
    world.advance(0.001);
    expect(await world.ask(ID, { headers: NO_CACHE })).toMatchObject({ status: 404 });
    gate.release();
    await ordinary;
    expect(await world.ask(ID)).toMatchObject({ status: 404 });
  });
});

describe('an error', () => {
  test.each([
    ['503', 503, json(503)],
    ['404', 404, json(404, '{"detail":"Not found."}')],
    ['a reset', 502, reset()],
  ])('(%s) is shared by those who wait, and the next read tries again', async (_, status, failure) => {
    const world = await openWorld();
    const gate = barrier();
    world.upstream.on(callOf(ID), reply(hold(gate), failure));
    const waiting = await begin(world, 5, () => world.ask(ID));
    await gate.reached;
    gate.release();
    const answers = await Promise.all(waiting);
    expect(answers.map((answer) => answer.status)).toEqual(Array.from({ length: 5 }, () => status));
    expect(new Set(answers.map(({ headers }) => headers['x-request-id'])).size).toBe(5);
    world.upstream.on(callOf(ID), json(200, bodyOf(ID, 2)));
    expect(seen(await world.ask(ID))).toEqual([200, MISS, 2]);
  });
});
