import { describe, expect, test } from 'vitest';
import { type OperationId, allOperations, allOverviews } from '../support/account-api.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { askAll, goodAfter, hit, isHit, MISS, NO_CACHE, NO_STORE, seen, versioned } from './helpers.ts';
import { legsOf } from '../overviews/helpers.ts';
import { callOf, isCallTo } from '../support/marked.ts';
import { barrier, hang, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds, uncachedIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const withCredential = allOperations.filter(({ credential }: Operation) => credential !== 'none').map(({ id }) => id);

const STATUSES = [401, 403] as const;

const refused = (status: number) => json(status, '{"detail":"Refused.","code":"refused"}');

/** Enough to see that all is gone: a group of its own, a list, an item, and one that writes never touch. */
const HELD: readonly OperationId[] = ['getSubscription', 'listTransactions', 'getSubuser', 'listNotifications'];

/** Each call that an overview makes, and all of them. */
const legs = allOverviews.flatMap((overview) => {
  const all = [...new Set(legsOf(overview).map(({ path }) => path))];
  return all.map((leg) => [overview.path, leg, all] as const);
});

const cases = withCredential.flatMap((id) => STATUSES.map((status) => [id, status] as const));

describe.each(cases)('%s refused with %i', (id, status) => {
  test('drops everything of that credential and nothing of another', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const other = secret();
    await askAll(world, HELD);
    await askAll(world, HELD, { token: other });
    world.upstream.once(
      ({ headers, ...call }) => isCallTo(id)({ headers, ...call }) && headers['authorization'] !== `Token ${other}`,
      refused(status),
    );
    expect((await world.ask(id, { headers: NO_CACHE })).status).toBe(status);
    state.version = 2;
    for (const answer of await askAll(world, HELD)) expect(seen(answer)).toEqual([200, MISS, 2]);
    for (const answer of await askAll(world, HELD, { token: other })) expect(seen(answer)).toEqual([200, isHit, 1]);
  });
});

describe.each(STATUSES)('after a %i', (status) => {
  test('everything is gone, whatever it was', async () => {
    const world = await openWorld();
    const state = versioned(world);
    await askAll(world, cachedIds);
    world.upstream.once(callOf('getApiKey'), refused(status));
    await world.ask('getApiKey');
    state.version = 2;
    for (const answer of await askAll(world, cachedIds)) expect(seen(answer)).toEqual([200, MISS, 2]);
  });

  test('no older copy is answered when the upstream fails', async () => {
    const world = await openWorld();
    versioned(world);
    await askAll(world, HELD);
    world.advance(61);
    world.upstream.once(callOf('getVerificationFlow'), refused(status));
    await world.ask('getVerificationFlow');
    world.upstream.on(() => true, json(503));
    for (const answer of await askAll(world, HELD)) expect(answer.status).toBe(503);
  });

  test('calls under way are not stored, and nobody joins them', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const gate = barrier();
    for (const id of HELD)
      world.upstream.once(
        callOf(id),
        perCall((call) => goodAfter(gate, call, 1)),
      );
    const underWay = askAll(world, HELD);
    await gate.count(HELD.length);
    world.upstream.once(callOf('getApiKey'), refused(status));
    await world.ask('getApiKey');
    state.version = 2;
    for (const answer of await askAll(world, HELD)) expect(seen(answer)).toEqual([200, MISS, 2]);
    gate.release();
    for (const answer of await underWay) expect(seen(answer)).toEqual([200, 'portico; fwd=miss', 1]);
    for (const answer of await askAll(world, HELD)) expect(seen(answer)).toEqual([200, isHit, 2]);
  });

  test('a read that was under way and fails is not answered with the older copy', async () => {
    const world = await openWorld();
    versioned(world);
    const gate = barrier();
    await world.ask('getSubscription');
    world.advance(400);
    world.upstream.on(callOf('getSubscription'), reply(hold(gate), json(503)));
    const reading = world.ask('getSubscription');
    await gate.reached;
    world.upstream.once(callOf('getApiKey'), refused(status));
    await world.ask('getApiKey');
    gate.release();
    expect(await reading).toMatchObject({ status: 503 });
  });

  test('of a refresh behind a stale copy, that copy is answered no more', async () => {
    const world = await openWorld();
    versioned(world);
    await askAll(world, HELD);
    world.advance(31);
    world.upstream.on(callOf('getSubscription'), refused(status));
    const dropped = world.store.refusals.next();
    expect(seen(await world.ask('getSubscription'))).toEqual([200, hit(-1), 1]);
    await dropped;
    expect(await world.ask('getSubscription')).toMatchObject({ status });
    world.upstream.on(() => true, json(503));
    for (const answer of await askAll(world, HELD)) expect(answer.status).toBe(503);
  });

  test('of a read that is not kept itself, everything is gone as well', async () => {
    const world = await openWorld();
    versioned(world);
    await askAll(world, HELD);
    world.upstream.once(callOf('getSubscription'), refused(status));
    expect(await world.ask('getSubscription', { headers: NO_STORE })).toMatchObject({ status });
    world.upstream.on(() => true, json(503));
    for (const answer of await askAll(world, HELD)) expect(answer.status).toBe(503);
  });

  test.each([...cachedIds, ...uncachedIds])('of %s, a copy that was held is not the answer', async (id) => {
    const world = await openWorld();
    versioned(world);
    await world.ask(id);
    world.advance(331);
    world.upstream.on(callOf(id), refused(status));
    expect(await world.ask(id)).toMatchObject({ status });
    expect(await world.ask(id)).toMatchObject({ status });
  });

  test.each(legs)('on a leg of %s (%s) everything is gone, and its siblings are given up', async (path, leg, all) => {
    const world = await openWorld();
    const state = versioned(world);
    await askAll(world, ['getSubuser', 'getTransaction']);
    const siblings = barrier();
    for (const one of all)
      world.upstream.on(
        ({ target }) => target === one,
        reply(
          perCall(() => async () => void siblings.arrive()),
          hang(),
        ),
      );
    world.upstream.on(
      ({ target }) => target === leg,
      reply(
        perCall(() => async () => siblings.count(all.length - 1)),
        refused(status),
      ),
    );
    const answer = await world.ask('getSubscription', { path });
    expect(answer.status).toBe(status);
    for (const call of world.upstream.calls.slice(2)) if (call.target !== leg) await world.upstream.disconnected(call);
    state.version = 2;
    for (const again of await askAll(world, ['getSubuser', 'getTransaction']))
      expect(seen(again)).toEqual([200, MISS, 2]);
  });

  test('in a batch everything is gone as well', async () => {
    const world = await openWorld();
    const state = versioned(world);
    await askAll(world, HELD);
    world.upstream.once(isCallTo('getEarnOut'), refused(status));
    const body = { requests: [{ id: 'a', path: '/api/v2/referral/earnout/1/' }] };
    const batch = await world.ask('getEarnOut', { method: 'POST', path: '/bff/v1/batch', body });
    expect(batch.json).toMatchObject({ responses: [{ id: 'a', status }] });
    state.version = 2;
    for (const answer of await askAll(world, HELD)) expect(seen(answer)).toEqual([200, MISS, 2]);
  });
});
