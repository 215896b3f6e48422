import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { createClient, type Portico, type Problem, type Retry, streamOverview } from '../../client/src/index.ts';
import { barrier, bytes, close, hold, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import { httpResponse, letRead } from '../support/steps.ts';
import { tokenOf } from '../support/marked.ts';
import {
  FIRST_PAUSE,
  gistOf,
  holdPauses,
  openStandIn,
  passPauses,
  PLAN,
  problem,
  problemOf,
  PURCHASE,
  SECOND_PAUSE,
  SUBSCRIPTION,
  thrownBy,
} from './helpers.ts';

const WRITE = 'PATCH /api/v2/referral/config/';
const BATCH = 'POST /bff/v1/batch';
const GOOD = { id: 1005 };

const html = (status: number): Step => json(status, '<!doctype html>', { 'content-type': 'text/html' });
const retryable = (status: number, more: Partial<Problem> = {}) =>
  problem(status, 'a_code', { retryable: true, ...more });
/** The headers arrive, and a part of the body. */
const cutInBody: Step = reply(bytes(httpResponse(200, GOOD).subarray(0, -3)), letRead(), close());

describe('a read', () => {
  test.for([
    ['a problem that is retryable', retryable(503), 'a_code 503'],
    ['429 that is retryable', retryable(429), 'a_code 429'],
    ['a failure of something in between', html(502), 'unexpected_answer 502'],
    ['429 of something in between', html(429), 'unexpected_answer 429'],
    ['a good status without its JSON', html(200), 'unexpected_answer 200'],
    ['an answer that breaks off in its body', cutInBody, 'connection_failed 0'],
    ['a connection that is cut', reset(), 'connection_failed 0'],
  ] as const)('goes out three times on %s', async ([, answer, gist]) => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, answer);
    expect(gistOf(await problemOf(portico.getSubscription()))).toBe(gist);
    expect(gateway.calls).toHaveLength(3);
    expect(lengths).toEqual([FIRST_PAUSE, SECOND_PAUSE]);
  });

  test.for([
    [0, []],
    [1, [FIRST_PAUSE]],
  ] as const)('goes out again %i times where that is asked for', async ([retries, pauses]) => {
    const lengths = passPauses();
    const { gateway, clientWith } = await openStandIn();
    gateway.on(SUBSCRIPTION, reset());
    await problemOf(clientWith({ retries }).getSubscription());
    expect(gateway.calls).toHaveLength(1 + retries);
    expect(lengths).toEqual(pauses);
  });

  test('goes out three times where nobody listens', async () => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    await gateway.close();
    expect(gistOf(await problemOf(portico.getSubscription()))).toBe('connection_failed 0');
    expect(lengths).toEqual([FIRST_PAUSE, SECOND_PAUSE]);
  });

  test.for([
    ['second', [retryable(503)]],
    ['third', [cutInBody, reset()]],
  ] as const)('resolves with the answer of its %s try', async ([, failures]) => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, ...failures, json(200, GOOD));
    expect(await portico.getSubscription()).toEqual(GOOD);
    expect(gateway.calls).toHaveLength(failures.length + 1);
  });

  test.for([
    ['a problem that is not retryable', problem(503, 'a_code'), 'a_code 503'],
    ['400', problem(400, 'a_code'), 'a_code 400'],
    ['401', problem(401, 'unauthenticated'), 'unauthenticated 401'],
    ['404 of something in between', html(404), 'unexpected_answer 404'],
  ] as const)('goes out once on %s', async ([, answer, gist]) => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, answer);
    expect(gistOf(await problemOf(portico.getSubscription()))).toBe(gist);
    expect([gateway.calls.length, lengths]).toEqual([1, []]);
  });

  test('of a stream is tried again until it begins', async () => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on('GET /bff/v1/account-overview', retryable(503), reset(), json(200, '{"complete":true}\n'));
    for await (const line of streamOverview(portico, 'getAccountOverview')) expect(line).toBeUndefined();
    expect(gateway.calls).toHaveLength(3);
  });
});

describe('the wait', () => {
  test.for([
    [0, 0],
    [1, 1000],
    [7, 7000],
    [60, 60_000],
  ] as const)('is what Retry-After says: %d s', async ([retry_after, ms]) => {
    const pauses = holdPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, retryable(503, { retry_after }), json(200, GOOD));
    const answer = portico.getSubscription();
    const pause = await pauses.next();
    expect([pause.ms, gateway.calls.length]).toEqual([ms, 1]);
    pause.end();
    expect(await answer).toEqual(GOOD);
  });

  test('is not waited if it is longer than a minute: the problem is thrown at once', async () => {
    const pauses = holdPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, retryable(429, { retry_after: 61 }));
    expect((await problemOf(portico.getSubscription())).retryAfter).toBe(61);
    expect([gateway.calls.length, pauses.lengths]).toEqual([1, []]);
  });

  test('is that of the answer in hand, each time', async () => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, retryable(503, { retry_after: 3 }), retryable(503), json(200, GOOD));
    await portico.getSubscription();
    expect(lengths).toEqual([3000, SECOND_PAUSE]);
  });

  test.for([
    [0, [125, 250]],
    [0.999, [374.75, 749.5]],
  ] as const)('is else random, so that clients do not come back all at once: %d', async ([random, expected]) => {
    const lengths = passPauses();
    vi.mocked(Math.random).mockReturnValue(random);
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, retryable(503));
    await problemOf(portico.getSubscription());
    expect(lengths).toEqual(expected);
  });
});

describe('the longest wait', () => {
  test.for([
    ['a minute unless given', undefined, [40, 20, 1], [40_000, 20_000]],
    ['that of all pauses together', 5000, [3, 2, 1], [3000, 2000]],
    ['what no pause would exceed', 5000, [6], []],
    ['none', 0, [1], []],
    ['longer than a minute, where that is wanted', 90_000, [80, 10], [80_000, 10_000]],
  ] as const)('is %s: then the problem is thrown', async ([, maxWait, seconds, expected]) => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn({ maxWait, retries: 5 });
    gateway.on(
      SUBSCRIPTION,
      ...seconds.map((retry_after) => retryable(503, { retry_after })),
      retryable(503, { retry_after: 1 }),
    );
    expect(gistOf(await problemOf(portico.getSubscription()))).toBe('a_code 503');
    expect(lengths).toEqual(expected);
  });

  test('is that of each call', async () => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn({ maxWait: 3000 });
    gateway.on(SUBSCRIPTION, retryable(503, { retry_after: 2 }));
    for (let time = 0; time < 2; time += 1) await problemOf(portico.getSubscription());
    expect(lengths).toEqual([2000, 2000]);
  });
});

describe('whoever listens', () => {
  test('hears of each pause before it begins: why, how long, and how many tries have failed', async () => {
    const pauses = holdPauses();
    const told: Retry[] = [];
    const { gateway, portico } = await openStandIn({ onRetry: (retry) => void told.push(retry) });
    gateway.on(SUBSCRIPTION, retryable(503, { retry_after: 9 }), reset(), json(200, GOOD));
    const answer = portico.getSubscription();
    for (const ms of [9000, SECOND_PAUSE]) {
      const { end } = await pauses.next();
      expect(told.at(-1)?.waitMs).toBe(ms);
      end();
    }
    expect(await answer).toEqual(GOOD);
    expect(told.map(({ problem: { code }, tries }) => [code, tries])).toEqual([
      ['a_code', 1],
      ['connection_failed', 2],
    ]);
  });

  test('hears of none that is not made', async () => {
    passPauses();
    const told: Retry[] = [];
    const { gateway, portico } = await openStandIn({ onRetry: (retry) => void told.push(retry) });
    gateway.on(SUBSCRIPTION, problem(404, 'not_found')).on(WRITE, retryable(409));
    await problemOf(portico.getSubscription());
    await problemOf(portico.updateReferralConfig({ mode: 'credits' }));
    expect(told).toEqual([]);
  });
});

const write = (portico: Portico) => portico.updateReferralConfig({ mode: 'credits' });
const buy = (portico: Portico) => portico.purchasePlan({ proxy_type: 'shared' });

describe('a write', () => {
  test.for([429, 503])('goes out three times on a %d that says that nothing was done', async (status) => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(WRITE, retryable(status, { retry_after: 2 }));
    expect((await problemOf(write(portico))).status).toBe(status);
    expect(gateway.calls.map(({ body }) => body)).toEqual(Array(3).fill('{"mode":"credits"}'));
    expect(lengths).toEqual([2000, 2000]);
  });

  test('resolves with the answer of its second try', async () => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(WRITE, retryable(503), json(200, GOOD));
    expect(await write(portico)).toEqual(GOOD);
  });

  test.for([
    ['an unknown outcome', problem(504, 'a_code', { outcome: 'unknown' })],
    ['an unknown outcome, whatever else is said', retryable(503, { outcome: 'unknown' })],
    ['409, whatever is said', retryable(409, { retry_after: 1 })],
    ['a problem that is not retryable', problem(503, 'a_code')],
    ['429 of something in between', html(429)],
    ['503 of something in between', html(503)],
    ['a good status without its JSON', html(200)],
    ['an answer that breaks off in its body', cutInBody],
    ['a connection that is cut', reset()],
  ] as const)('goes out once on %s', async ([, answer]) => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(WRITE, answer).on(PURCHASE, answer);
    await problemOf(write(portico));
    await problemOf(buy(portico));
    expect([gateway.calls.length, lengths]).toEqual([2, []]);
  });

  test('goes out once where nobody listens', async () => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    await gateway.close();
    expect(gistOf(await problemOf(write(portico)))).toBe('connection_failed 0 unknown');
    expect(lengths).toEqual([]);
  });
});

const readOne = (portico: Portico) => portico.batch({ requests: [{ id: 'a', path: '/api/v2/subscription/' }] });

describe('a batch', () => {
  test.for([
    ['a problem that is retryable', retryable(503)],
    ['a connection that is cut', reset()],
    ['a failure of something in between', html(502)],
  ] as const)('is tried again as a read is, on %s, and says nothing of an outcome', async ([, answer]) => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(BATCH, answer);
    expect((await problemOf(readOne(portico))).outcome).toBeUndefined();
    expect(gateway.calls).toHaveLength(3);
  });
});

describe('a token function', () => {
  test('is asked for each try', async () => {
    passPauses();
    let asked = 0;
    const token = () => {
      asked += 1;
      return Promise.resolve('one');
    };
    const { gateway, portico } = await openStandIn({ token });
    gateway.on(SUBSCRIPTION, retryable(503));
    await problemOf(portico.getSubscription());
    expect(gateway.calls.map(tokenOf)).toEqual(['one', 'one', 'one']);
    expect(asked).toBe(3);
  });

  test('throws what it throws: nothing is sent, and nothing is tried again', async () => {
    const lengths = passPauses();
    const error = new Error('signed out');
    const { gateway, clientWith } = await openStandIn();
    const throwing = () => {
      throw error;
    };
    for (const token of [throwing, () => Promise.reject(error)]) {
      const portico = clientWith({ token });
      expect(await thrownBy(portico.getSubscription())).toBe(error);
      expect(await thrownBy(portico.updateReferralConfig({}))).toBe(error);
      expect(await thrownBy(portico.purchasePlan({ proxy_type: 'shared' }))).toBe(error);
    }
    expect([gateway.calls, lengths]).toEqual([[], []]);
  });

  test('that returns what no header can hold sends nothing, and no error tells it', async () => {
    const { gateway, clientWith } = await openStandIn();
    for (const token of ['a\nsecret', 'secret😀', 'a secret']) {
      const thrown = await thrownBy(clientWith({ token: () => token }).getSubscription());
      expect(thrown).toBeInstanceOf(TypeError);
      expect(inspect(thrown)).not.toContain('secret');
    }
    expect(gateway.calls).toEqual([]);
  });

  test('is waited for no longer than until an abort', async () => {
    const { gateway, clientWith } = await openStandIn();
    const portico = clientWith({ token: () => new Promise(() => undefined) });
    const reason = new Error('left');
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [portico.getSubscription(undefined, { signal }), portico.purchasePlan(PLAN, { signal })];
    const thrown = calls.map(thrownBy);
    controller.abort(reason);
    expect(await Promise.all(thrown)).toEqual([reason, reason]);
    expect(gateway.calls).toEqual([]);
  });
});

test('two calls wait each for itself', async () => {
  const pauses = holdPauses();
  const gate = barrier();
  const { gateway, portico } = await openStandIn();
  gateway.on(SUBSCRIPTION, retryable(503, { retry_after: 9 }), json(200, GOOD));
  gateway.on('GET /api/v2/referral/config/', reply(hold(gate), json(200, GOOD)));
  const waiting = portico.getSubscription();
  const pause = await pauses.next();
  const other = portico.getReferralConfig();
  await gate.reached;
  gate.release();
  expect(await other).toEqual(GOOD);
  expect(gateway.calls).toHaveLength(2);
  pause.end();
  expect(await waiting).toEqual(GOOD);
});

describe('without an address', () => {
  test.for([undefined, '', '127.0.0.1:8787', 'localhost:8787', '/bff'])(
    '%j: a write is a mistake, and no failed connection',
    async (url) => {
      const error = await thrownBy(createClient({ url }).purchasePlan({}));
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toMatchObject({ message: expect.stringContaining('url') as string });
    },
  );
});
