import { describe, expect, test, vi } from 'vitest';
import { type Retry, watchOverview } from '../../client/src/index.ts';
import { barrier, hold, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import { tokenOf } from '../support/marked.ts';
import { gistOf, problem, problemOf, thrownBy } from './helpers.ts';
import {
  changed,
  DELTA,
  drained,
  FIRST,
  openWatch,
  passing,
  preferenceOf,
  same,
  SECOND_MS,
  sectionsOf,
  valueOf,
  WAITED,
  whole,
} from './watching.ts';

describe('a watch', () => {
  test('gives the whole overview at once, asks for changes a second later, and waits for them at the gateway', async () => {
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), hold(gate)]);
    const first = await valueOf(world.watch);
    expect(first).toEqual({ data: FIRST, errors: [], meta: { complete: true, sections: sectionsOf(FIRST) } });
    void world.watch.next();
    expect(await passing(world, 1)).toEqual([SECOND_MS]);
    await gate.reached;
    expect(world.gateway.calls[0]!.headers).not.toHaveProperty('prefer');
    expect(world.gateway.calls[1]!.headers).toMatchObject({
      'if-none-match': '"1"',
      prefer: 'changed-sections, wait=30',
      'cache-control': 'max-age=0',
    });
    await world.watch.return();
  });

  test('merges what has changed, and gives what has not as the same objects', async () => {
    const world = await openWatch([
      whole('"1"', FIRST),
      changed('"2"', { notifications: { count: 1 } }, ['subscription']),
      changed('"3"', { subscription: { plan: 2 } }, ['notifications']),
    ]);
    const values = [await valueOf(world.watch)];
    for (let time = 0; time < 2; time += 1) {
      const next = valueOf(world.watch);
      await passing(world, 1);
      values.push(await next);
    }
    expect(values.map(({ data }) => data)).toEqual([
      FIRST,
      { subscription: { plan: 1 }, notifications: { count: 1 } },
      { subscription: { plan: 2 }, notifications: { count: 1 } },
    ]);
    const [one, two, three] = values.map(({ data }) => data);
    expect(two!['subscription']).toBe(one!['subscription']);
    expect(three!['notifications']).toBe(two!['notifications']);
    for (const { meta } of values) expect(Object.keys(meta)).toEqual(['complete', 'sections']);
    expect(world.gateway.calls.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"1"', '"2"']);
  });

  test('gives what a section says of its failure, with no new data', async () => {
    const states = { subscription: { state: 'stale', age: 40, code: 'upstream_timeout' } };
    const meta = { complete: true, unchanged: Object.keys(FIRST), sections: sectionsOf(FIRST, states) };
    const world = await openWatch([
      whole('"1"', FIRST),
      json(200, { data: {}, errors: [], meta }, { etag: '"1!"', ...DELTA }),
    ]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    expect(await next).toMatchObject({ data: FIRST, meta: { sections: states } });
  });

  test('is quiet while nothing changes, and waits again and again', async () => {
    const world = await openWatch([
      whole('"1"', FIRST),
      same(),
      same(),
      whole('"2"', { ...FIRST, notifications: null }),
    ]);
    await world.watch.next();
    const next = valueOf(world.watch);
    expect(await passing(world, 3)).toEqual([SECOND_MS, SECOND_MS, SECOND_MS]);
    expect((await next).data).toEqual({ ...FIRST, notifications: null });
    expect(world.gateway.calls).toHaveLength(4);
  });

  test('asks for what is wanted, under either name', async () => {
    const { gateway, portico } = await openWatch([whole('"1"', { transactions: null })]);
    gateway.on(() => true, whole('"1"', { transactions: null }));
    const wanted = {
      sections: ['transactions'],
      fields: { transactions: ['id'] },
      pageSize: { transactions: 5 },
    } as const;
    const names = ['billing-overview', 'getBillingOverview'] as const;
    for (const name of names) await watchOverview(portico, name, { ...wanted, strict: true }).next();
    const target =
      '/bff/v1/billing-overview?page_size%5Btransactions%5D=5&sections=transactions&fields%5Btransactions%5D=id';
    expect(gateway.calls.map((call) => call.target)).toEqual([target, target]);
    expect(gateway.calls.map(preferenceOf)).toEqual(['handling=strict', 'handling=strict']);
  });

  test('asks for nothing while nobody wants a value', async () => {
    const world = await openWatch([whole('"1"', FIRST)]);
    expect(world.gateway.calls).toHaveLength(0);
    await world.watch.next();
    expect([world.gateway.calls.length, world.pauses.lengths]).toEqual([1, []]);
  });
});

describe('a 304', () => {
  const stale = { subscription: { state: 'stale', age: 40, code: 'upstream_timeout' } };

  test('makes what is stale older, and is given, since a screen says how old it is', async () => {
    const world = await openWatch([whole('"1"', FIRST, stale), same({ ...WAITED, age: '70' })]);
    const first = await valueOf(world.watch);
    const next = valueOf(world.watch);
    const { end } = await world.pauses.next();
    vi.advanceTimersByTime(30_000);
    end();
    const { data, meta } = await next;
    expect(meta.sections).toEqual({
      subscription: { ...stale.subscription, age: 70 },
      notifications: { state: 'fresh', age: 30 },
    });
    expect(data['subscription']).toBe(first.data['subscription']);
    expect(first.meta.sections).toMatchObject(stale); // stays what it was
  });

  test('says by its Age that a stale section has been read again: it is fresh', async () => {
    const world = await openWatch([
      whole('"1"', FIRST, { subscription: { state: 'stale', age: 40 } }),
      same({ ...WAITED, age: '3' }),
    ]);
    await world.watch.next();
    const next = valueOf(world.watch);
    const { end } = await world.pauses.next();
    vi.advanceTimersByTime(30_000);
    end();
    expect((await next).meta.sections).toEqual({
      subscription: { state: 'fresh', age: 3 },
      notifications: { state: 'fresh', age: 3 },
    });
  });
});

describe('where nobody can wait', () => {
  test.for([
    ['as long as the copy is fresh', { 'cache-status': 'portico; hit; ttl=12' }, 12_000],
    [
      'as long as the copy of the gateway is, whoever else has one',
      { 'cache-status': 'other; hit; ttl=90, portico; hit; ttl=7' },
      7000,
    ],
    ['10 s, if the copy is stale', { 'cache-status': 'portico; hit; ttl=-4' }, 10_000],
    ['10 s, if nothing is said', {}, 10_000],
    ['a second at least', { 'cache-status': 'portico; hit; ttl=0' }, SECOND_MS],
  ] as const)('it pauses %s', async ([, headers, ms]) => {
    const world = await openWatch([whole('"1"', FIRST), same(headers), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    expect(await passing(world, 2)).toEqual([SECOND_MS, ms]);
    await next;
  });

  test('a 304 that took long was waited for, though its header cannot be seen', async () => {
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), reply(hold(gate), same({})), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    await gate.reached;
    vi.advanceTimersByTime(20_000);
    gate.release();
    await next; // without a pause: the second has passed
    expect(world.pauses.lengths).toEqual([SECOND_MS]);
  });

  test('an older gateway answers with all of it, which takes the place of what was', async () => {
    const other = { subscription: { plan: 9 }, notifications: null };
    const world = await openWatch([whole('"1"', FIRST), whole('"2"', other), same({})]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    expect((await next).data).toEqual(other);
    void world.watch.next();
    expect((await world.pauses.next()).ms).toBe(10_000);
    await world.watch.return();
  });

  test('an answer that may not be kept is asked for anew, whole', async () => {
    const error = { section: 'notifications', code: 'upstream_timeout' };
    const incomplete = json(200, {
      data: { ...FIRST, notifications: null },
      errors: [error],
      meta: { complete: false, sections: {} },
    });
    const world = await openWatch([incomplete, whole('"2"', FIRST)]);
    expect((await valueOf(world.watch)).errors).toEqual([error]);
    const next = valueOf(world.watch);
    expect(await passing(world, 1)).toEqual([10_000]);
    expect(await next).toMatchObject({ data: FIRST, errors: [] });
    expect(world.gateway.calls.map(preferenceOf)).toEqual([undefined, undefined]);
  });

  test('after two waits in a row that were cut off the next thirty requests do not wait', async () => {
    const fails = reset();
    const kept = same({ 'cache-status': 'portico; hit; ttl=12' });
    const world = await openWatch([
      whole('"1"', FIRST),
      fails,
      kept,
      fails,
      ...Array.from({ length: 30 }, () => kept),
      same(),
    ]);
    void drained(world.watch);
    expect(await passing(world, 6)).toEqual([SECOND_MS, 250, SECOND_MS, 250, 12_000, 12_000]);
    await passing(world, 28);
    await world.gateway.waitForCalls(35);
    const waits = world.gateway.calls.map((call) => /wait/.test(preferenceOf(call) ?? ''));
    expect(waits).toEqual([false, true, false, true, ...Array.from({ length: 30 }, () => false), true]);
    await world.watch.return();
  });

  test('a wait that is cut off now and then is no reason not to wait', async () => {
    const fails = reset();
    const world = await openWatch([whole('"1"', FIRST), fails, same(), same(), fails, same(), same()]);
    void drained(world.watch);
    expect(await passing(world, 6)).toEqual([SECOND_MS, 250, SECOND_MS, SECOND_MS, 250, SECOND_MS]);
    const calls = await world.gateway.waitForCalls(7);
    expect(calls.map((call) => /wait/.test(preferenceOf(call) ?? ''))).toEqual([
      false,
      true,
      false,
      true,
      true,
      false,
      true,
    ]);
    await world.watch.return();
  });

  test('sections that are left out say that the gateway can wait, though its header cannot be seen', async () => {
    const meta = { complete: true, unchanged: Object.keys(FIRST), sections: sectionsOf(FIRST) };
    const delta = json(200, { data: {}, errors: [], meta }, { etag: '"2"' });
    const world = await openWatch([whole('"1"', FIRST), delta, whole('"3"', FIRST)]);
    await world.watch.next();
    for (let time = 0; time < 2; time += 1) {
      const next = world.watch.next();
      expect(await passing(world, 1)).toEqual([SECOND_MS]);
      await next;
    }
  });

  test('a try without any answer is given up, and asked again without a wait', async () => {
    const world = await openWatch([whole('"1"', FIRST), hold(barrier()), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    const [, waiting] = await world.gateway.waitForCalls(2);
    vi.advanceTimersByTime(45_000);
    world.pauses.giveUp();
    await next;
    await world.gateway.disconnected(waiting!);
    expect(world.gateway.calls.map(preferenceOf)).toEqual([undefined, 'changed-sections, wait=30', 'changed-sections']);
  });
});

describe('trouble that passes', () => {
  test.for([
    ['a connection that is cut', reset(), 'connection_failed 0', 250],
    ['503', problem(503, 'upstream_unavailable', { retryable: true }), 'upstream_unavailable 503', 250],
    ['429', problem(429, 'rate_limited', { retryable: true, retry_after: 41 }), 'rate_limited 429', 41_000],
    ['a 5xx that does not say so', problem(508, 'loop_detected'), 'loop_detected 508', 250],
    [
      'a page of something in between',
      json(502, '<html>', { 'content-type': 'text/html' }),
      'unexpected_answer 502',
      250,
    ],
    ['what is no JSON', json(200, '<html>'), 'connection_failed 0', 250],
  ] as const)('is told, and waited out: %s', async ([, step, gist, ms]) => {
    const world = await openWatch([whole('"1"', FIRST), step, whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    expect(await passing(world, 2)).toEqual([SECOND_MS, ms]);
    await next;
    expect(world.told.map(({ problem: one, waitMs, tries }) => [gistOf(one), waitMs, tries])).toEqual([[gist, ms, 1]]);
    expect(preferenceOf(world.gateway.calls[2]!)).toBe('changed-sections'); // wants an answer at once
  });

  test('is over with the next good answer, which is a value also where nothing has changed; those after it are none', async () => {
    const world = await openWatch([whole('"1"', FIRST), reset(), same({ age: '9' }), same(), whole('"2"', FIRST)]);
    const first = await valueOf(world.watch);
    const back = valueOf(world.watch);
    await passing(world, 2);
    const { data, meta } = await back;
    expect(data).toBe(first.data);
    expect(meta.sections).toEqual(first.meta.sections);
    const next = valueOf(world.watch);
    await passing(world, 2);
    await next;
    expect([world.told.length, world.gateway.calls.length]).toEqual([1, 5]);
  });

  test('is waited out for ever longer, up to 20 s and as random as that: from 10 to 30', async () => {
    const world = await openWatch([...Array<Step>(10).fill(reset()), whole('"1"', FIRST)]);
    const next = valueOf(world.watch);
    expect(await passing(world, 10)).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000]);
    await next;
  });

  test('is waited out for an hour at most, whatever is said', async () => {
    const world = await openWatch([problem(429, 'rate_limited', { retryable: true, retry_after: 1e9 })]);
    void world.watch.next();
    expect((await world.pauses.next()).ms).toBe(3_600_000);
    await world.watch.return();
  });

  test('is told to the client’s own `onRetry` unless the watch has one', async () => {
    const told: Retry[] = [];
    const world = await openWatch([reset(), whole('"1"', FIRST)], { onRetry: (retry) => void told.push(retry) });
    const next = watchOverview(world.portico, 'account-overview').next();
    await passing(world, 1);
    await next;
    expect(told).toHaveLength(1);
  });
});

describe('what ends it', () => {
  test.for([
    ['401', problem(401, 'unauthenticated'), 'unauthenticated 401'],
    ['403', problem(403, 'account_suspended'), 'account_suspended 403'],
    ['400', problem(400, 'validation_failed'), 'validation_failed 400'],
    ['404', problem(404, 'unknown_endpoint'), 'unknown_endpoint 404'],
  ] as const)('is a problem that will not pass: %s', async ([, step, gist]) => {
    const world = await openWatch([whole('"1"', FIRST), step]);
    await world.watch.next();
    const thrown = problemOf(world.watch.next());
    await passing(world, 1);
    expect(gistOf(await thrown)).toBe(gist);
    expect(await world.watch.next()).toEqual({ done: true, value: undefined });
    expect(world.told).toEqual([]);
  });

  test('is another account: nothing is asked for it', async () => {
    let token = 'one';
    const world = await openWatch([whole('"1"', FIRST)], { token: () => token });
    await world.watch.next();
    token = 'two';
    const thrown = problemOf(world.watch.next());
    await passing(world, 1);
    expect((await thrown).code).toBe('account_changed');
    expect(world.gateway.calls.map(tokenOf)).toEqual(['one']);
  });

  const reason = new Error('left');

  test.for(['while it waits at the gateway', 'in a pause', 'between two values', 'before it begins'] as const)(
    'is its signal: %s',
    async (when) => {
      const gate = barrier();
      const world = await openWatch([whole('"1"', FIRST), hold(gate)]);
      if (when === 'before it begins') world.controller.abort(reason);
      else await world.watch.next();
      if (when === 'between two values') world.controller.abort(reason);
      const thrown = thrownBy(world.watch.next());
      if (when === 'while it waits at the gateway') {
        await passing(world, 1);
        await gate.reached;
        world.controller.abort(reason);
        await world.gateway.disconnected(world.gateway.calls[1]!);
      }
      if (when === 'in a pause') {
        await world.pauses.next();
        world.controller.abort(reason);
      }
      expect(await thrown).toBe(reason);
      expect(await world.watch.next()).toEqual({ done: true, value: undefined });
    },
  );

  test.for(['while it waits at the gateway', 'in a pause'] as const)('is `return()`: %s', async (when) => {
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), hold(gate)]);
    await world.watch.next();
    const next = world.watch.next();
    const { end } = await world.pauses.next();
    if (when === 'while it waits at the gateway') {
      end();
      await gate.reached;
    }
    const ended = world.watch.return();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(await ended).toEqual({ done: true, value: undefined });
    if (when === 'while it waits at the gateway') await world.gateway.disconnected(world.gateway.calls[1]!);
    else expect(world.gateway.calls).toHaveLength(1);
  });

  test('is a loop that is left', async () => {
    const world = await openWatch([whole('"1"', FIRST)]);
    for await (const { data } of world.watch) {
      expect(data).toEqual(FIRST);
      break;
    }
    expect([world.gateway.calls.length, world.pauses.lengths]).toEqual([1, []]);
  });
});
