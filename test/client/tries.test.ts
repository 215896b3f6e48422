import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createClient, type Portico, type Problem, type Retry } from '../../client/src/index.ts';
import { createClock, FIRST_PAUSE, SECOND_PAUSE } from '../support/client-clock.ts';
import {
  type Answer,
  gistThrown,
  hold,
  json,
  KINDS,
  lost,
  openStandIn,
  PLAN,
  problem,
  problemOf,
  PURCHASE,
  settled,
  SUBSCRIPTION,
  thrownBy,
} from './helpers.ts';

const GOOD = { id: 1005 };
const retryable = (status: number, more: Partial<Problem> = {}) =>
  problem(status, 'a_code', { retryable: true, ...more });

const read = (portico: Portico) => portico.getSubscription();
const write = (portico: Portico) => portico.updateReferralConfig({ mode: 'credits' });
const buy = (portico: Portico) => portico.purchasePlan(PLAN);
const readMany = (portico: Portico) => portico.batch({ requests: [{ id: 'a', path: '/api/v2/subscription/' }] });

/** How often a read and a write go out on it. A batch is a read, and a purchase is a write. */
const TRIES: readonly (readonly [string, Answer, reads: number, writes: number])[] = [
  ['a problem that is retryable', retryable(503), 3, 3],
  ['429 that is retryable', retryable(429), 3, 3],
  ['a problem that is not retryable', problem(503, 'a_code'), 1, 1],
  ['400', problem(400, 'a_code'), 1, 1],
  ['an unknown outcome', problem(504, 'a_code', { outcome: 'unknown' }), 1, 1],
  ['an unknown outcome, whatever else is said', retryable(503, { outcome: 'unknown' }), 3, 1],
  ['409, whatever is said', retryable(409), 3, 1],
  ['a connection that is cut', lost, 3, 1],
];

describe.for(TRIES)('on %s', ([, answer, reads, writes]) => {
  test.for([
    ['a read', read, reads],
    ['a batch', readMany, reads],
    ['a write', write, writes],
    ['a purchase', buy, writes],
  ] as const)('%s goes out as often as it may', async ([, act, times]) => {
    const { gateway, clock, portico } = openStandIn();
    gateway.on('*', answer);
    await problemOf(act(portico));
    expect(gateway.calls).toHaveLength(times);
    expect(clock.lengths).toEqual([FIRST_PAUSE, SECOND_PAUSE].slice(0, times - 1));
    expect(new Set(gateway.calls.map(({ body }) => body)).size).toBe(1);
  });
});

test('a read goes out again as often as is asked for', async () => {
  for (const retries of [0, 1]) {
    const { gateway, clock, portico } = openStandIn({ retries });
    gateway.on(SUBSCRIPTION, lost);
    await problemOf(read(portico));
    expect([gateway.calls.length, clock.lengths]).toEqual([1 + retries, Array(retries).fill(FIRST_PAUSE)]);
  }
});

describe('the wait', () => {
  test('is that of the answer in hand, each time: what Retry-After says, else random', async () => {
    const { gateway, clock, portico } = openStandIn();
    gateway.on(SUBSCRIPTION, retryable(503, { retry_after: 3 }), retryable(503), json(200, GOOD));
    expect(await read(portico)).toEqual(GOOD);
    expect(clock.lengths).toEqual([3000, SECOND_PAUSE]);
  });

  test.for([
    [0, [125, 250]],
    [0.999, [374.75, 749.5]],
  ] as const)('is random, so that clients do not come back all at once: %d', async ([random, expected]) => {
    const { gateway, clock, portico } = openStandIn({}, createClock({ random }));
    gateway.on(SUBSCRIPTION, retryable(503));
    await problemOf(read(portico));
    expect(clock.lengths).toEqual(expected);
  });

  test.for([
    ['of all pauses together', [40, 20, 1], [40_000, 20_000]],
    ['of one pause', [61], []],
  ] as const)('%s is at most a minute: then the problem is thrown', async ([, seconds, expected]) => {
    const { gateway, clock, portico } = openStandIn({ retries: 5 });
    gateway.on(SUBSCRIPTION, ...seconds.map((retry_after) => retryable(503, { retry_after })));
    expect(await gistThrown(read(portico))).toBe('a_code 503');
    expect(clock.lengths).toEqual(expected);
  });
});

test('whoever listens hears of each pause before it begins: why, how long, and how many tries have failed', async () => {
  const told: Retry[] = [];
  const { gateway, clock, portico } = openStandIn({ onRetry: (pause) => void told.push(pause) });
  clock.hold();
  gateway.on(SUBSCRIPTION, retryable(503, { retry_after: 9 }), lost, json(200, GOOD));
  const answer = read(portico);
  for (const ms of [9000, SECOND_PAUSE]) {
    const { end } = await clock.next();
    expect(told.at(-1)?.waitMs).toBe(ms);
    end();
  }
  expect(await answer).toEqual(GOOD);
  const heard = told.map(({ problem: { code }, tries }) => `${code} ${tries}`);
  expect(heard).toEqual(['a_code 1', 'connection_failed 2']);
});

describe('a token function', () => {
  test('throws what it throws: nothing is sent, and nothing is tried again', async () => {
    const error = new Error('signed out');
    const throwing = () => {
      throw error;
    };
    for (const token of [throwing, () => Promise.reject(error)]) {
      const { gateway, clock, portico } = openStandIn({ token });
      for (const act of [read, write, buy]) expect(await thrownBy(act(portico))).toBe(error);
      expect([gateway.calls, clock.lengths]).toEqual([[], []]);
    }
  });

  test.for(['a\nsecret', 'secret😀', 'a secret'])(
    'that returns %j sends nothing, and no error tells it',
    async (token) => {
      const { gateway, portico } = openStandIn({ token: () => token });
      const thrown = await thrownBy(read(portico));
      expect(thrown).toBeInstanceOf(TypeError);
      expect([inspect(thrown).includes('secret'), gateway.calls]).toEqual([false, []]);
    },
  );
});

test('a purchase has one key for all tries', async () => {
  const { gateway, portico } = openStandIn();
  gateway.on(PURCHASE, retryable(503));
  await problemOf(buy(portico));
  const keys = gateway.calls.map(({ headers }) => headers['idempotency-key']);
  expect([keys.length, new Set(keys).size]).toEqual([3, 1]);
});

const REASON = new Error('the user has left');

describe.for(KINDS)('%s', ([, act]) => {
  test('that is aborted before it begins sends nothing, and rejects with the reason', async () => {
    const { gateway, portico } = openStandIn();
    expect(await thrownBy(act(portico, AbortSignal.abort(REASON)))).toBe(REASON);
    expect(gateway.calls).toEqual([]);
  });

  test('that is aborted under way leaves, rejects with the reason, and sends nothing more', async () => {
    const { gateway, clock, portico } = openStandIn();
    gateway.on('*', hold().answer);
    const controller = new AbortController();
    const thrown = thrownBy(act(portico, controller.signal));
    const call = await gateway.arrived(1);
    controller.abort(REASON);
    expect(await thrown).toBe(REASON);
    await call.left;
    expect([gateway.calls.length, clock.lengths]).toEqual([1, []]);
  });

  test('that is aborted in a wait ends it, rejects with the reason, and sends nothing more', async () => {
    const { gateway, clock, portico } = openStandIn();
    clock.hold();
    gateway.on('*', problem(503, 'a_code', { retryable: true, retry_after: 30 }));
    const controller = new AbortController();
    const thrown = thrownBy(act(portico, controller.signal));
    const pause = await clock.next();
    controller.abort(REASON);
    expect(await thrown).toBe(REASON);
    pause.end();
    await settled();
    expect(gateway.calls).toHaveLength(1);
  });
});

test('whatever error fetch rejects with, it is the reason that is thrown; where signals know none, that error', async () => {
  const error = new DOMException('Aborted', 'AbortError');
  const controller = new AbortController();
  const portico = createClient({
    url: 'http://gateway.test',
    token: 'a',
    fetch: () => {
      controller.abort(REASON);
      return Promise.reject(error);
    },
  });
  expect(await thrownBy(portico.getSubscription(undefined, controller))).toBe(REASON);
  const signal = { aborted: false, addEventListener() {}, removeEventListener() {} };
  const fetch = () => {
    signal.aborted = true;
    return Promise.reject(error);
  };
  const given = { signal: signal as unknown as AbortSignal };
  expect(await thrownBy(createClient({ fetch, token: 'a' }).getSubscription(undefined, given))).toBe(error);
});
