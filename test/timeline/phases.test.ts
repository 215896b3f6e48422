import { setImmediate } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { Snapshot, Store } from '../../src/store/port.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { type OverviewBody, SUBSCRIPTION } from '../overviews/helpers.ts';
import { manualClock } from '../support/clock.ts';
import { bodyOf, callOf, isCallTo } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { openWorld, type World } from '../support/world.ts';

const READ = 'getSubscription';
const OVERVIEW = '/bff/v1/account-overview';
const SLOW = { SLOW_MS: '1' };

interface LegLine {
  readonly leg: string;
  readonly ms: number;
  readonly phases: Readonly<Record<string, number>>;
  readonly reason?: string;
}

const linesOf = ({ gateway }: World) => gateway.lines.filter(({ msg }) => msg === 'request');

const legsIn = async (world: World, nth = 0): Promise<readonly LegLine[]> => {
  const line = await vi.waitFor(() => linesOf(world)[nth] ?? expect.fail('no line yet'));
  return (line.legs ?? []) as readonly LegLine[];
};

const sumOf = ({ phases }: LegLine) => Object.values(phases).reduce((sum, ms) => sum + ms, 0);

/** A store whose questions are answered when the test says so. */
function slowStore(ask: (what: 'snapshot' | 'save') => Promise<void>): Store {
  const store = memoryStore(manualClock());
  const slowly = (snapshot: Snapshot): Snapshot => ({
    use: snapshot.use,
    session: snapshot.session,
    copy: (key) => snapshot.copy(key),
    lookup: (key) => snapshot.lookup(key),
    holds: (key, found) => snapshot.holds(key, found),
    save: async (key, found, fetched) => ask('save').then(() => snapshot.save(key, found, fetched)),
  });
  const asked = store.snapshot.bind(store);
  return Object.assign(store, {
    snapshot: async (request: Parameters<Store['snapshot']>[0]) =>
      ask('snapshot').then(async () => slowly(await asked(request))),
  });
}

describe('the line of a slow request says where its time went:', () => {
  test('to its attempt', async () => {
    const world = await openWorld(SLOW);
    const gate = barrier();
    world.upstream.on(callOf(READ), reply(hold(gate), json(200, bodyOf(READ, 1))));
    const asked = world.ask(READ);
    await gate.reached;
    world.advance(1.5);
    gate.release();
    await asked;
    expect(await legsIn(world)).toEqual([{ leg: READ, ms: 1500, phases: { attempt: 1500 } }]);
  });

  test('to attempts that fail, and to the pause between them', async () => {
    const clock = manualClock();
    const world = await openWorld(SLOW, { clock });
    const gates = [barrier(), barrier()] as const;
    world.upstream.on(
      callOf(READ),
      reply(hold(gates[0]), json(503, '')),
      reply(hold(gates[1]), json(200, bodyOf(READ, 1))),
    );
    const asked = world.ask(READ);
    await gates[0].reached;
    clock.advance(300);
    gates[0].release();
    for (let ms = 0; world.upstream.calls.length < 2; ms++) {
      expect(ms).toBeLessThan(9_000);
      await setImmediate();
      clock.advance(1);
    }
    gates[1].release();
    expect((await asked).status).toBe(200);
    const [leg] = await legsIn(world);
    expect(leg).toMatchObject({ leg: READ, reason: 'status', phases: { attempt: expect.any(Number) } });
    expect(leg?.phases['attempt']).toBeGreaterThanOrEqual(300);
    expect(leg?.phases['back-off']).toBeGreaterThan(0);
    expect(leg?.phases['back-off']).toBeLessThanOrEqual(100);
    expect(leg && sumOf(leg)).toBe(leg?.ms);
  });

  test('to the queue for a slot', async () => {
    const world = await openWorld({ ...SLOW, UPSTREAM_MAX_CONNECTIONS: '1' }, { clock: manualClock() });
    const gate = barrier();
    world.upstream.on(isCallTo(READ), reply(hold(gate), json(200, bodyOf(READ, 1))), json(200, bodyOf(READ, 2)));
    const first = world.ask(READ);
    await gate.reached;
    const second = world.ask(READ, { token: secret() });
    await vi.waitFor(() => expect(world.store.lookups.total).toBe(2));
    world.advance(0.7);
    gate.release();
    await Promise.all([first, second]);
    expect(await legsIn(world, 1)).toEqual([{ leg: READ, ms: 700, phases: { slot: 700 } }]);
  });

  test('to another request’s call', async () => {
    const world = await openWorld(SLOW);
    const gate = barrier();
    world.upstream.on(callOf(READ), reply(hold(gate), json(200, bodyOf(READ, 1))));
    const waiting = world.store.lookups.next(2);
    const both = [world.ask(READ), world.ask(READ)];
    await waiting;
    await gate.reached;
    world.advance(0.4);
    gate.release();
    await Promise.all(both);
    const legs = [await legsIn(world, 0), await legsIn(world, 1)].flat();
    expect(legs).toContainEqual({ leg: READ, ms: 400, phases: { joined: 400 } });
    expect(legs).toContainEqual({ leg: READ, ms: 400, phases: { attempt: 400 } });
  });

  test('to the store', async () => {
    const clock = manualClock();
    const passed = { snapshot: 145, save: 30 };
    const store = slowStore(async (what) => {
      await Promise.resolve();
      clock.advance(passed[what]);
    });
    const world = await openWorld(SLOW, { clock, store });
    world.upstream.on(callOf(READ), json(200, bodyOf(READ, 1)));
    await world.ask(READ);
    expect(await legsIn(world)).toEqual([{ leg: READ, ms: 175, phases: { store: 175 } }]);
  });

  test('by section, and of the slowest the phases add up to the whole', async () => {
    const world = await openWorld(SLOW);
    world.answerAll();
    const gate = barrier();
    world.upstream.on('GET /api/v2/referral/config/', reply(hold(gate), json(200, bodyOf('getReferralConfig', 1))));
    const asked = world.call({ path: OVERVIEW, token: world.token });
    await gate.reached;
    world.advance(0.9);
    gate.release();
    await asked;
    const [line] = linesOf(world);
    const legs = await legsIn(world);
    const slowest = legs.find(({ ms }) => ms === line?.duration_ms);
    expect(slowest).toEqual({ leg: 'referral_config', ms: 900, phases: { attempt: 900 } });
    for (const leg of legs) expect(sumOf(leg)).toBeCloseTo(leg.ms, 5);
  });

  test('of a batch by its items', async () => {
    const world = await openWorld(SLOW);
    world.answerAll();
    const gate = barrier();
    world.upstream.on(callOf(READ), reply(hold(gate), json(200, bodyOf(READ, 1))));
    const requests = [
      { id: 'a', path: '/api/v2/notification/' },
      { id: 'b', path: SUBSCRIPTION },
    ];
    const asked = world.call({ method: 'POST', path: '/bff/v1/batch', token: world.token, body: { requests } });
    await gate.reached;
    world.advance(0.2);
    gate.release();
    await asked;
    expect(await legsIn(world)).toContainEqual({ leg: `${READ}#2`, ms: 200, phases: { attempt: 200 } });
  });

  test('of a batch with a new credential to the first item, for those that wait until it is accepted', async () => {
    const world = await openWorld(SLOW);
    world.answerAll();
    const gate = barrier();
    world.upstream.on(callOf(READ), reply(hold(gate), json(200, bodyOf(READ, 1))));
    const requests = [
      { id: 'a', path: SUBSCRIPTION },
      { id: 'b', path: '/api/v2/notification/' },
    ];
    const asked = world.call({ method: 'POST', path: '/bff/v1/batch', token: world.token, body: { requests } });
    await gate.reached;
    world.advance(0.6);
    gate.release();
    await asked;
    const last = (await legsIn(world)).at(-1);
    expect(last).toEqual({ leg: 'listNotifications#2', ms: 600, phases: { joined: 600 } });
  });

  test('without the refresh behind a stale answer, which nobody has waited for', async () => {
    const world = await openWorld({
      ...SLOW,
      CACHE_POLICY: '{"getSubscription":{"fresh":1,"stale":60,"on_error":60},"getReferralConfig":false}',
    });
    world.answerAll();
    await world.call({ path: OVERVIEW, token: world.token });
    world.advance(2);
    const [refresh, config] = [barrier(), barrier()];
    world.upstream.on(callOf(READ), reply(hold(refresh), json(200, bodyOf(READ, 2))));
    world.upstream.on('GET /api/v2/referral/config/', reply(hold(config), json(200, bodyOf('getReferralConfig', 2))));
    const asked = world.call({ path: OVERVIEW, token: world.token });
    await Promise.all([refresh.reached, config.reached]);
    world.advance(0.9);
    config.release();
    await asked;
    expect(linesOf(world)[1]).toMatchObject({ stale: ['subscription'] });
    const waited = (await legsIn(world, 1)).filter(({ ms }) => ms > 0);
    expect(waited).toEqual([{ leg: 'referral_config', ms: 900, phases: { attempt: 900 } }]);
    await world.ask(READ); // stale too, and its refresh still goes on
    expect(linesOf(world)[2]).toMatchObject({ cache: 'stale' });
    refresh.release();
  });

  test('where it waited for nothing too, and from SLOW_MS on only', async () => {
    const world = await openWorld({ SLOW_MS: '0' });
    world.answerAll();
    await world.ask(READ);
    await world.ask(READ);
    expect(await legsIn(world, 1)).toEqual([{ leg: READ, ms: 0, phases: {} }]);
    const other = await openWorld();
    other.answerAll();
    await other.ask(READ);
    expect(linesOf(other)[0]).not.toHaveProperty('legs');
  });
});

const open = async () => {
  const world = await openWorld({ CACHE_POLICY: '{"getSubscription":{"fresh":1,"stale":0,"on_error":60}}' });
  world.answerAll();
  return world;
};

describe('the line of an overview names', () => {
  test('the sections that failed, with the reason, though it is a 200', async () => {
    const world = await open();
    world.upstream.on('GET /api/v2/referral/config/', json(500, {}));
    expect((await world.call({ path: OVERVIEW, token: world.token })).status).toBe(200);
    expect(linesOf(world)).toMatchObject([{ level: 'info', failed: ['referral_config'], reason: 'status' }]);
  });

  test('the section that the whole fails for', async () => {
    const world = await open();
    world.upstream.on(callOf(READ), json(500, {}));
    expect((await world.call({ path: OVERVIEW, token: world.token })).status).toBe(502);
    expect(linesOf(world)).toMatchObject([{ status: 502, failed: ['subscription'], reason: 'status' }]);
    world.upstream.on(callOf(READ), json(401, {}));
    await world.call({ path: OVERVIEW, token: secret() });
    expect(linesOf(world)[1]).not.toHaveProperty('failed'); // the client's fault
  });

  test('those that are stale', async () => {
    const world = await open();
    await world.call({ path: OVERVIEW, token: world.token });
    world.advance(2);
    world.upstream.on(callOf(READ), json(500, {}));
    const { json: body } = await world.call({ path: OVERVIEW, token: world.token });
    expect((body as OverviewBody).meta.sections['subscription']?.state).toBe('stale');
    expect(linesOf(world)[1]).toMatchObject({ stale: ['subscription'], reason: 'status' });
  });

  test('them in a stream too', async () => {
    const world = await open();
    world.upstream.on('GET /api/v2/referral/config/', json(500, {}));
    await world.call({ path: OVERVIEW, token: world.token, headers: { Accept: 'application/x-ndjson' } });
    await vi.waitFor(() => expect(linesOf(world)).toMatchObject([{ failed: ['referral_config'] }]));
  });

  test('neither where all is well', async () => {
    const world = await open();
    await world.call({ path: OVERVIEW, token: world.token });
    for (const name of ['failed', 'stale', 'reason', 'legs']) expect(linesOf(world)[0]).not.toHaveProperty(name);
  });
});
