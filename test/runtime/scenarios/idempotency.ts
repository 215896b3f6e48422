import { expect } from 'vitest';
import type { TextAnswer } from '../../support/http.ts';
import { expectProblem, fail, hold, type Scenario, type Stage, visit, type Visitor } from '../stage.ts';

const PATH = '/api/v2/subscription/checkout/purchase/';
const PLAN = '{"proxy_countries":{"US":100,"FR":20},"recaptcha":"token"}';
const REPRINTED = '{ "recaptcha": "t\\u006fken", "proxy_countries": { "FR": 20, "US": 100 } }';
const OTHER_PLAN = '{"proxy_countries":{"US":200},"recaptcha":"token"}';

let keys = 0;

const newKey = () => `scenario-${++keys}`;

const buy = (visitor: Visitor, key: string | undefined, body = PLAN): Promise<TextAnswer> =>
  visitor.call({ path: PATH, body, headers: key === undefined ? {} : { 'idempotency-key': key } });

const expectReplay = (again: TextAnswer, first: TextAnswer) => {
  expect([again.status, again.text]).toEqual([first.status, first.text]);
  expect(again.headers['idempotency-replayed']).toBe('true');
  expect(again.headers).not.toHaveProperty('cache-status');
};

/** In each the work is done, and nobody hears of it. */
const LOST = [
  ['is lost with its connection', { reset: true }, 502, 'upstream_unreachable'],
  ['fails with status 500', { status: 500 }, 502, 'upstream_bad_response'],
  ['fails with status 503', { status: 503 }, 503, 'upstream_unavailable'],
  ['breaks off', { malformed: true }, 502, 'upstream_bad_response'],
] as const;

const lostScenarios = LOST.map(([name, fault, status, code]): Scenario => ({
  name: `a purchase whose answer ${name} is of unknown outcome, and its key sends it no more`,
  async run(stage) {
    const visitor = await visit(stage, 'paused');
    const key = newKey();
    await fail(stage, { operation: 'purchasePlan', afterWork: true, ...fault });
    expect(expectProblem(await buy(visitor, key), status, code).outcome).toBe('unknown');
    for (let time = 0; time < 2; time++)
      expect(expectProblem(await buy(visitor, key), 409, 'outcome_unknown').outcome).toBe('unknown');
    const asked = { path: '/bff/v1/outcome', headers: { 'idempotency-key': key } };
    expect((await visitor.call(asked)).json).toEqual({ state: 'unknown' });
    expectProblem(await buy(visitor, key, OTHER_PLAN), 422, 'idempotency_key_reused');
    expect(await visitor.upstreamCalls()).toEqual(['purchasePlan']);
  },
}));

/** A purchase that the upstream has begun, and what becomes of it. */
const begun = async (stage: Stage, visitor: Visitor, key?: string) => {
  const at = await hold(stage, 'purchasePlan');
  const answer = buy(visitor, key);
  await at.reached;
  return { at, answer };
};

export const idempotencyScenarios: readonly Scenario[] = [
  {
    name: 'a purchase with a key is made once, and answered as often as it is asked for',
    async run(stage) {
      const visitor = await visit(stage, 'paused');
      const key = newKey();
      const first = await buy(visitor, key);
      expect([first.status, first.headers['cache-status']]).toEqual([200, 'portico; fwd=method']);
      expect(first.headers).not.toHaveProperty('idempotency-replayed');
      expectReplay(await buy(visitor, key), first);
      expectReplay(await buy(visitor, key, REPRINTED), first);
      expect(await visitor.upstreamCalls()).toEqual(['purchasePlan']);
    },
  },
  {
    name: 'a write without an answer to tell is replayed as such',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const ask = { method: 'POST', path: '/api/v2/proxy/list/refresh/', headers: { 'idempotency-key': newKey() } };
      const first = await visitor.call(ask);
      expect([first.status, first.text]).toEqual([204, '']);
      const again = await visitor.call(ask);
      expectReplay(again, first);
      expect(again.headers).not.toHaveProperty('content-type');
      expect(await visitor.upstreamCalls()).toEqual(['refreshProxyList']);
    },
  },
  {
    name: 'a key is good for one request, and for one account',
    async run(stage) {
      const [visitor, other] = [await visit(stage, 'paused'), await visit(stage, 'paused')];
      const key = newKey();
      const first = await buy(visitor, key);
      expectProblem(await buy(visitor, key, OTHER_PLAN), 422, 'idempotency_key_reused');
      const headers = { 'idempotency-key': key };
      const apiKey = await visitor.call({ path: '/api/v2/apikey/', body: {}, headers });
      expectProblem(apiKey, 422, 'idempotency_key_reused');
      expect((await buy(other, key)).headers).not.toHaveProperty('idempotency-replayed');
      expectReplay(await buy(visitor, key), first);
      expect([await visitor.upstreamCalls(), await other.upstreamCalls()]).toEqual([
        ['purchasePlan'],
        ['purchasePlan'],
      ]);
    },
  },
  {
    name: 'while a purchase is under way its key is taken, and has its answer afterwards',
    async run(stage) {
      const visitor = await visit(stage, 'paused');
      const key = newKey();
      const { at, answer } = await begun(stage, visitor, key);
      expectProblem(await buy(visitor, key), 409, 'idempotency_in_progress');
      expectProblem(await buy(visitor, key, OTHER_PLAN), 422, 'idempotency_key_reused');
      at.release();
      const first = await answer;
      expectReplay(await buy(visitor, key), first);
      expect(await visitor.upstreamCalls()).toEqual(['purchasePlan']);
    },
  },
  {
    name: 'who asks for a key hears what became of it, and nothing is sent',
    async run(stage) {
      const [visitor, other] = [await visit(stage, 'paused'), await visit(stage, 'paused')];
      const key = newKey();
      const asked = { path: '/bff/v1/outcome', headers: { 'idempotency-key': key } };
      expectProblem(await visitor.call(asked), 404, 'outcome_not_found');
      const { at, answer } = await begun(stage, visitor, key);
      expect((await visitor.call(asked)).json).toEqual({ state: 'under_way' });
      at.release();
      const { status } = await answer;
      const told = await visitor.call(asked);
      expect(told.json).toEqual({ state: 'done', status, at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) });
      expect(told.headers['cache-control']).toBe('no-store');
      expectProblem(await other.call(asked), 404, 'outcome_not_found');
      expect(await visitor.upstreamCalls()).toEqual(['purchasePlan']);
    },
  },
  {
    name: 'of two equal purchases at the same moment without a key one is made',
    async run(stage) {
      const [visitor, other] = [await visit(stage, 'paused'), await visit(stage, 'paused')];
      const { at, answer } = await begun(stage, visitor);
      expectProblem(await buy(visitor, undefined, REPRINTED), 409, 'idempotency_in_progress');
      expect((await buy(visitor, undefined, OTHER_PLAN)).status).toBe(200);
      expect((await buy(other, undefined)).status).toBe(200);
      expect(await visitor.upstreamCalls()).toHaveLength(2);
      at.release();
      expect((await answer).status).toBe(200);
      expect((await buy(visitor, undefined)).status).toBe(200);
      expect(await visitor.upstreamCalls()).toHaveLength(3);
    },
  },
  ...lostScenarios,
  {
    name: 'a purchase that the upstream refuses can be asked for again with its key',
    async run(stage) {
      const visitor = await visit(stage, 'paused');
      const key = newKey();
      await fail(stage, { operation: 'purchasePlan', status: 400, body: [{ message: 'No.', code: 'card_declined' }] });
      expect(expectProblem(await buy(visitor, key), 400, 'card_declined')).not.toHaveProperty('outcome');
      const second = await buy(visitor, key, OTHER_PLAN);
      expect([second.status, second.headers['idempotency-replayed']]).toEqual([200, undefined]);
      expectReplay(await buy(visitor, key, OTHER_PLAN), second);
      expect(await visitor.upstreamCalls()).toHaveLength(2);
    },
  },
  {
    name: 'a key that is none is refused, and nothing is sent',
    async run(stage) {
      const visitor = await visit(stage, 'paused');
      for (const key of ['a b', 'k'.repeat(256), 'caf\u00e9'])
        expect(expectProblem(await buy(visitor, key), 400, 'validation_failed').errors).toMatchObject([
          { field: 'Idempotency-Key' },
        ]);
      expect(await visitor.upstreamCalls()).toEqual([]);
    },
  },
];
