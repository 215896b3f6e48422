import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ClientOptions, type Portico, type Retry, watchOverview } from '../../client/src/index.ts';
import { barrier, type Call, hold, json, reply, reset, type Step } from '../../src/testing/scripted-upstream.ts';
import { tokenOf } from '../support/marked.ts';
import { gistOf, holdPauses, openStandIn, problem, problemOf, thrownBy } from './helpers.ts';

const OVERVIEW = 'GET /bff/v1/account-overview';
const SECOND_MS = 1000;
const MINUTES_MS = 300_000;
const WAITED = { 'preference-applied': 'wait=30' };
const DELTA = { 'preference-applied': 'changed-sections, wait=30' };

const fresh = { state: 'fresh', age: 0 };
const sectionsOf = (data: object, states: object = {}) => ({
  ...Object.fromEntries(Object.keys(data).map((name) => [name, fresh])),
  ...states,
});

/** A whole answer. */
const whole = (etag: string, data: object, states?: object) =>
  json(200, { data, errors: [], meta: { complete: true, sections: sectionsOf(data, states) } }, { etag });
/** What has changed, beside what has not. */
const changed = (etag: string, data: object, unchanged: readonly string[]) => {
  const sections = sectionsOf({ ...data, ...Object.fromEntries(unchanged.map((name) => [name, null])) });
  return json(200, { data, errors: [], meta: { complete: true, unchanged, sections } }, { etag, ...DELTA });
};
const same = (headers: Record<string, string> = WAITED) => json(304, '', headers);

const FIRST = { subscription: { plan: 1 }, notifications: { count: 0 } };

/** A watch whose pauses the test ends, at a clock that stands still. The gateway answers as told, the last thing again and again. */
async function openWatch(answers: readonly Step[], options: ClientOptions = {}) {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const pauses = holdPauses();
  const standIn = await openStandIn(options);
  standIn.gateway.on(OVERVIEW, ...answers);
  const told: Retry[] = [];
  const controller = new AbortController();
  const { signal } = controller;
  const onRetry = (retry: Retry) => void told.push(retry);
  const start = (portico: Portico = standIn.portico) => watchOverview(portico, 'account-overview', { signal, onRetry });
  return { ...standIn, pauses, told, controller, start, watch: start() };
}

type World = Awaited<ReturnType<typeof openWatch>>;

/** What it gives next. */
const valueOf = async (watch: World['watch']) => {
  const { value, done } = await watch.next();
  if (done) throw new Error('it has ended');
  return value as { data: Record<string, object>; meta: { sections: Record<string, object> }; errors: object[] };
};
const preferenceOf = ({ headers }: Call) => headers['prefer'];
/** Lets so many pauses pass, and says how long they were. */
const passing = async ({ pauses }: World, count: number) => {
  const lengths: number[] = [];
  for (let number = 0; number < count; number += 1) {
    const { ms, end } = await pauses.next();
    lengths.push(ms);
    end();
  }
  return lengths;
};

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
    await world.watch.next();
    void world.watch.next();
    expect(await passing(world, 6)).toEqual([SECOND_MS, 250, SECOND_MS, 250, 12_000, 12_000]);
    await passing(world, 28);
    await world.gateway.waitForCalls(35);
    const waits = world.gateway.calls.map((call) => /wait/.test(preferenceOf(call) ?? ''));
    expect(waits).toEqual([false, true, false, true, ...Array.from({ length: 30 }, () => false), true]);
    await world.watch.return();
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

  test('is waited out for ever longer, up to 20 s and as random as that: from 10 to 30', async () => {
    const world = await openWatch([...Array<Step>(10).fill(reset()), whole('"1"', FIRST)]);
    const next = valueOf(world.watch);
    expect(await passing(world, 10)).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000]);
    await next;
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

/** A page, that is shown or hidden as the test says. */
function openPage() {
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  vi.stubGlobal('document', page);
  onTestFinished(() => void vi.unstubAllGlobals());
  return {
    turn(state: 'visible' | 'hidden') {
      page.visibilityState = state;
      page.dispatchEvent(new Event('visibilitychange'));
    },
  };
}

describe('a page that is hidden', () => {
  test('has no open wait, asks every five minutes, and at once when it is shown', async () => {
    const page = openPage();
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), hold(gate), same({}), same({}), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    await gate.reached;
    page.turn('hidden');
    await world.gateway.disconnected(world.gateway.calls[1]!);
    const slow = await world.pauses.next();
    expect(slow.ms).toBe(MINUTES_MS);
    slow.end();
    expect((await world.pauses.next()).ms).toBe(MINUTES_MS);
    expect(world.gateway.calls.map(preferenceOf)).toEqual([undefined, 'changed-sections, wait=30', 'changed-sections']);
    vi.advanceTimersByTime(SECOND_MS);
    page.turn('visible');
    await world.gateway.waitForCalls(4);
    expect(preferenceOf(world.gateway.calls[3]!)).toContain('wait=30');
    await passing(world, 1);
    await next;
  });

  test('is given its first value at once', async () => {
    openPage().turn('hidden');
    const world = await openWatch([whole('"1"', FIRST)]);
    await world.watch.next();
    expect(world.pauses.lengths).toEqual([]);
  });
});

/** A network that is there or not as the test says. */
function openNetwork() {
  const network = { onLine: true };
  const events = new EventTarget();
  vi.stubGlobal('navigator', network);
  vi.stubGlobal('addEventListener', events.addEventListener.bind(events));
  vi.stubGlobal('removeEventListener', events.removeEventListener.bind(events));
  onTestFinished(() => void vi.unstubAllGlobals());
  return {
    turn(isOnline: boolean) {
      network.onLine = isOnline;
      if (isOnline) events.dispatchEvent(new Event('online'));
    },
  };
}

describe('a network that is gone', () => {
  test('is looked for every half minute, and used as soon as it is back', async () => {
    const network = openNetwork();
    const world = await openWatch([whole('"1"', FIRST), reset(), reset(), whole('"2"', FIRST)]);
    await world.watch.next();
    network.turn(false);
    const next = valueOf(world.watch);
    expect(await passing(world, 2)).toEqual([SECOND_MS, 30_000]);
    expect((await world.pauses.next()).ms).toBe(30_000);
    network.turn(true);
    await next;
    expect(world.gateway.calls).toHaveLength(4);
  });

  test('and comes back during a wait may be another one: it asks anew', async () => {
    const network = openNetwork();
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), hold(gate), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    await gate.reached;
    vi.advanceTimersByTime(SECOND_MS);
    network.turn(true);
    await next;
    await world.gateway.disconnected(world.gateway.calls[1]!);
  });
});
