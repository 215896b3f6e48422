import { describe, expect, test } from 'vitest';
import { type ClientOptions, keepCopies, type Retry, watchOverview } from '../../client/src/index.ts';
import { createClock, createSurroundings, TRY_MS } from '../support/client-clock.ts';
import {
  type Answer,
  type Call,
  gistOf,
  gistThrown,
  hold,
  html,
  json,
  lost,
  openStandIn,
  problem,
  settled,
  thrownBy,
} from './helpers.ts';

const OVERVIEW = 'GET /bff/v1/account-overview';
const SECOND = 1000;
const WAITED = { 'preference-applied': 'wait=30' };
const DELTA = { 'preference-applied': 'changed-sections, wait=30' };
const REASON = new Error('left');
const OVER = { done: true, value: undefined };
const FIRST = { subscription: { plan: 1 }, notifications: { count: 0 } };

const fresh = { state: 'fresh', age: 0 };
const sectionsOf = (data: object, states: object = {}) => ({
  ...Object.fromEntries(Object.keys(data).map((name) => [name, fresh])),
  ...states,
});

/** A whole answer. */
const whole = (etag: string, data: object = FIRST, states?: object, headers: object = {}) =>
  json(200, { data, errors: [], meta: { complete: true, sections: sectionsOf(data, states) } }, { etag, ...headers });
/** What has changed, beside what has not: nothing to be kept by itself. */
const changed = (etag: string, data: object, states: object = {}, headers: Record<string, string> = DELTA) => {
  const unchanged = Object.keys(FIRST).filter((name) => !(name in data));
  const meta = { complete: true, unchanged, sections: sectionsOf(FIRST, states) };
  return json(200, { data, errors: [], meta }, { etag, 'cache-control': 'no-store', ...headers });
};
const same = (headers: Record<string, string> = WAITED) => json(304, '', headers);
const limited = (retry_after: number) => problem(429, 'rate_limited', { retryable: true, retry_after });

/** A watch whose pauses the test ends. The gateway answers as told, the last thing again and again. */
function openWatch(answers: readonly Answer[], options: ClientOptions = {}) {
  const around = createSurroundings();
  const clock = createClock({ more: around.more });
  clock.hold();
  const standIn = openStandIn(options, clock);
  standIn.gateway.on(OVERVIEW, ...answers);
  const told: Retry[] = [];
  const controller = new AbortController();
  const { signal } = controller;
  const watch = watchOverview(standIn.portico, 'account-overview', {
    signal,
    onRetry: (pause) => void told.push(pause),
  });
  const value = async () => {
    const { value: got, done } = await watch.next();
    if (done) throw new Error('it has ended');
    return got as { data: Record<string, object>; meta: { sections: Record<string, object> }; errors: object[] };
  };
  /** Lets so many pauses pass, and says how long they were. */
  const passing = async (count: number) => {
    const lengths: number[] = [];
    for (let number = 0; number < count; number += 1) {
      const { ms, end } = await clock.next();
      lengths.push(ms);
      end();
    }
    return lengths;
  };
  /** Its next value, after these pauses. */
  const after = async (...lengths: number[]) => {
    const next = value();
    expect(await passing(lengths.length)).toEqual(lengths);
    return next;
  };
  const wishes = () => standIn.gateway.calls.map(({ headers }) => headers['prefer']);
  const waits = () => wishes().map((prefer) => /wait/.test(prefer ?? ''));
  return { ...standIn, around, told, controller, watch, value, passing, after, wishes, waits };
}

/** The same, whose first value has come. */
async function openWatched(...answers: Answer[]) {
  const world = openWatch([whole('"1"'), ...answers]);
  return { ...world, first: await world.value() };
}

describe('a watch', () => {
  test('gives the whole overview at once, asks for changes a second later, and waits for them at the gateway', async () => {
    const { gateway, value, passing } = openWatch([whole('"1"'), hold().answer]);
    expect(await value()).toEqual({ data: FIRST, errors: [], meta: { complete: true, sections: sectionsOf(FIRST) } });
    void value();
    expect(await passing(1)).toEqual([SECOND]);
    await gateway.arrived(2);
    expect(gateway.calls[0]!.headers).not.toHaveProperty('prefer');
    const wish = { 'if-none-match': '"1"', prefer: 'changed-sections, wait=30', 'cache-control': 'max-age=0' };
    expect(gateway.calls[1]!.headers).toMatchObject(wish);
  });

  test('merges what has changed, and gives what has not as the same objects', async () => {
    const answers = [changed('"2"', { notifications: { count: 1 } }), changed('"3"', { subscription: { plan: 2 } })];
    const { gateway, first: one, after } = await openWatched(...answers);
    const [two, three] = [await after(SECOND), await after(SECOND)];
    expect(two.data).toEqual({ subscription: { plan: 1 }, notifications: { count: 1 } });
    expect(three.data).toEqual({ subscription: { plan: 2 }, notifications: { count: 1 } });
    expect(two.data['subscription']).toBe(one.data['subscription']);
    expect(three.data['notifications']).toBe(two.data['notifications']);
    for (const { meta } of [one, two, three]) expect(Object.keys(meta)).toEqual(['complete', 'sections']);
    expect(gateway.calls.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"1"', '"2"']);
  });

  test('asks for what is wanted, under either name', async () => {
    const { gateway, portico, wishes } = openWatch([]);
    gateway.on('*', whole('"1"', { transactions: null }));
    const wanted = { sections: ['transactions'], page_size: { transactions: 5 }, strict: true } as const;
    for (const name of ['billing-overview', 'getBillingOverview'] as const)
      await watchOverview(portico, name, { ...wanted, fields: { transactions: ['id'] } }).next();
    const query = 'sections=transactions&page_size%5Btransactions%5D=5&fields%5Btransactions%5D=id';
    const target = `/bff/v1/billing-overview?${query}`;
    expect(gateway.calls.map((call) => call.target)).toEqual([target, target]);
    expect(wishes()).toEqual(['handling=strict', 'handling=strict']);
  });
});

/** An app that was here before, with a store, and now starts again with these answers. */
async function openAgain(...answers: Answer[]) {
  const items = new Map<string, string>();
  const store = {
    getItem: (name: string) => items.get(name),
    setItem: (name: string, text: string) => items.set(name, text),
  };
  const copiesOf = (account: string) => keepCopies({ store, account });
  const before = openWatch([whole('"1"'), changed('"2"', { notifications: { count: 1 } })], {
    copies: copiesOf('ann'),
  });
  await before.value();
  await before.after(SECOND);
  await settled();
  await before.watch.return();
  return {
    ...openWatch(answers, { copies: copiesOf('ann') }),
    openFor: (account: string) => openWatch(answers, { copies: copiesOf(account) }),
  };
}
const parse = (text: string): unknown =>
  JSON.parse(text, (_, found: unknown) => (typeof found === 'number' ? BigInt(found) : found));

describe('a watch with copies', () => {
  const KEPT = { subscription: { plan: 1 }, notifications: { count: 1 } };

  test('shows what was there last, as stale, without a network; and tries on', async () => {
    const { value, after, told, gateway } = await openAgain(lost, changed('"3"', { subscription: { plan: 2 } }));
    const first = await value();
    expect(first.data).toEqual(KEPT);
    expect(first.meta.sections).toEqual(
      sectionsOf(FIRST, { subscription: { state: 'stale', age: 0 }, notifications: { state: 'stale', age: 0 } }),
    );
    expect(gateway.calls).toEqual([]);
    expect((await after(250)).data).toEqual({ ...KEPT, subscription: { plan: 2 } });
    expect([told.length, gateway.calls[0]!.headers]).toMatchObject([
      1,
      { 'if-none-match': '"2"', prefer: 'changed-sections' },
    ]);
  });

  test('is told when what it shows still holds, with the ages as they are', async () => {
    const { value, clock, around } = await openAgain(same({ age: '4' }), hold().answer);
    clock.pass(61 * SECOND); // the app before was a second ahead
    expect((await value()).meta.sections['subscription']).toEqual({ state: 'stale', age: 60 });
    const next = await value();
    expect([next.data, next.meta.sections['subscription']]).toEqual([KEPT, { state: 'fresh', age: 4 }]);
    expect(around.heard.size).toBe(0);
  });

  test('goes on without them where `parse` makes what JSON has not', async () => {
    const { value } = openWatch([whole('"1"', { subscription: { plan: 7 } })], { copies: keepCopies(), parse });
    expect((await value()).data).toEqual({ subscription: { plan: 7n } });
  });

  test('shows nothing of another account, and nothing that says `no-store`', async () => {
    const bob = (await openAgain(whole('"9"', { subscription: { plan: 9 } }))).openFor('bob');
    expect((await bob.value()).data).toEqual({ subscription: { plan: 9 } });
    const copies = keepCopies();
    const secret = openWatch([whole('"1"', FIRST, {}, { 'cache-control': 'no-store' }), changed('"2"', {})], {
      copies,
    });
    await secret.value();
    await secret.after(SECOND);
    const { gateway, value } = openWatch([whole('"1"')], { copies });
    await value();
    expect(gateway.calls).toHaveLength(1);
  });
});

const late = { state: 'stale', age: 40, code: 'upstream_timeout' };

test('a 304 makes what is stale older, and is given, since a screen says how old it is', async () => {
  const answers = [whole('"1"', FIRST, { subscription: late }), same({ ...WAITED, age: '70' })];
  const { clock, value, after } = openWatch(answers);
  const first = await value();
  clock.pass(29 * SECOND);
  const { data, meta } = await after(); // the second has passed
  expect(meta.sections).toEqual({ subscription: { ...late, age: 69 }, notifications: { state: 'fresh', age: 29 } });
  expect(data['subscription']).toBe(first.data['subscription']);
  expect(first.meta.sections).toMatchObject({ subscription: late }); // stays what it was
});

describe('where nobody can wait', () => {
  test('it asks every half minute', async () => {
    const { after } = await openWatched(same({}), whole('"2"'));
    await after(SECOND, 30_000);
  });

  test('a try without any answer is given up after 45 s, and asked again without a wait', async () => {
    const { gateway, clock, value, passing, wishes } = await openWatched(hold().answer, whole('"2"'));
    const next = value();
    await passing(1);
    const waiting = await gateway.arrived(2);
    clock.end();
    await next;
    await waiting.left;
    expect(wishes()).toEqual([undefined, 'changed-sections, wait=30', 'changed-sections']);
    expect(TRY_MS).toBe(45_000);
  });
});

describe('trouble that passes', () => {
  test.for([
    ['a connection that is cut', lost, 'connection_failed 0', 250],
    ['503', problem(503, 'upstream_unavailable', { retryable: true }), 'upstream_unavailable 503', 250],
    ['429', limited(41), 'rate_limited 429', 41_000],
    ['429 for longer than an hour', limited(1e9), 'rate_limited 429', 3_600_000],
    ['a 5xx that does not say so', problem(508, 'loop_detected'), 'loop_detected 508', 250],
    ['a page of something in between', html(502), 'unexpected_answer 502', 250],
    ['what is no JSON', html(200), 'connection_failed 0', 250],
  ] as const)('is told, and waited out: %s', async ([, answer, gist, ms]) => {
    const { after, told, wishes } = await openWatched(answer, whole('"2"'));
    await after(SECOND, ms);
    expect(told.map(({ problem: one, waitMs, tries }) => [gistOf(one), waitMs, tries])).toEqual([[gist, ms, 1]]);
    expect(wishes()[2]).toBe('changed-sections'); // wants an answer at once
  });

  test('is over with the next good answer, which is a value also where nothing has changed; a wait that was cut off is tried again after half a minute', async () => {
    const { gateway, first, after, told } = await openWatched(lost, same({ age: '0' }), same(), whole('"2"'));
    const back = await after(SECOND, 250);
    expect(back.data).toBe(first.data);
    expect(back.meta.sections).toEqual(first.meta.sections);
    await after(30 * SECOND, SECOND);
    expect([told.length, gateway.calls.length]).toEqual([1, 5]);
  });

  test('is waited out for ever longer, up to 20 s and as random as that: from 10 to 30', async () => {
    const { after } = openWatch([...Array<Answer>(10).fill(lost), whole('"1"')]);
    await after(250, 500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000);
  });
});

describe('what ends it', () => {
  test.for([
    ['unauthenticated', 401],
    ['account_suspended', 403],
    ['validation_failed', 400],
    ['unknown_endpoint', 404],
  ] as const)('is a problem that will not pass: %s', async ([code, status]) => {
    const { watch, passing, told } = await openWatched(problem(status, code));
    const thrown = gistThrown(watch.next());
    await passing(1);
    expect(await thrown).toBe(`${code} ${status}`);
    expect([await watch.next(), told]).toEqual([OVER, []]);
  });

  test('is another account: nothing is asked for it', async () => {
    let token = 'one';
    const { gateway, value, watch, passing } = openWatch([whole('"1"')], { token: () => token });
    await value();
    token = 'two';
    const thrown = gistThrown(watch.next());
    await passing(1);
    expect(await thrown).toBe('account_changed 0');
    expect(gateway.calls.map(({ headers }) => headers['authorization'])).toEqual(['Token one']);
  });

  /** Lets a watch come to where it is ended, with a value that is asked for. */
  const WHEN = {
    'while it waits at the gateway': async ({ passing, gateway }: ReturnType<typeof openWatch>) => {
      await passing(1);
      return gateway.arrived(2);
    },
    'in a pause': async ({ clock }: ReturnType<typeof openWatch>) => void (await clock.next()),
  };

  test.for(Object.entries(WHEN))('is its signal, %s', async ([, come]) => {
    const world = openWatch([whole('"1"'), hold().answer]);
    await world.value();
    const thrown = thrownBy(world.watch.next());
    const waiting: Call | void = await come(world);
    world.controller.abort(REASON);
    expect(await thrown).toBe(REASON);
    if (waiting) await waiting.left;
    else expect(world.gateway.calls).toHaveLength(1);
    expect([await world.watch.next(), world.around.heard.size]).toEqual([OVER, 0]);
  });

  test('is `break`', async () => {
    const { watch, around } = openWatch([whole('"1"')]);
    for await (const _ of watch) break;
    expect([await watch.next(), around.heard.size]).toEqual([OVER, 0]);
  });
});

describe('a page that is hidden', () => {
  test('has no open wait and asks nothing, and asks at once when it is shown', async () => {
    const { gateway, clock, around, value, passing, waits } = await openWatched(hold().answer, whole('"2"'));
    const next = value();
    await passing(1);
    const waiting = await gateway.arrived(2);
    around.turn('hidden');
    await waiting.left;
    clock.pass(1000 * SECOND);
    around.online();
    await settled();
    expect([gateway.calls.length, clock.lengths]).toEqual([2, [SECOND]]);
    around.turn('visible');
    await next;
    expect(waits()).toEqual([false, true, true]);
  });

  test('has a first value all the same', async () => {
    const { around, value } = openWatch([whole('"1"')]);
    around.turn('hidden');
    expect((await value()).data).toEqual(FIRST);
  });

  test('ends with its signal', async () => {
    const { around, watch, controller } = await openWatched();
    around.turn('hidden');
    const thrown = thrownBy(watch.next());
    controller.abort(REASON);
    expect(await thrown).toBe(REASON);
  });

  test('and shown again does not ask before Retry-After is over', async () => {
    const { clock, around, value, passing } = await openWatched(limited(41), whole('"2"'));
    const next = value();
    expect(await passing(1)).toEqual([SECOND]);
    expect((await clock.next()).ms).toBe(41_000);
    clock.pass(SECOND);
    around.turn('hidden');
    around.turn('visible');
    expect(await passing(1)).toEqual([40_000]);
    await next;
  });
});

test('a network that is back is used at once', async () => {
  const { clock, around, value, passing } = await openWatched(lost, whole('"2"'));
  const next = value();
  await passing(1);
  expect((await clock.next()).ms).toBe(250);
  around.online();
  await next;
});
