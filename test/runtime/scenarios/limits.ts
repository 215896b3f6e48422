import { expect } from 'vitest';
import { call, type TextAnswer } from '../../support/http.ts';
import { expectProblem, from, type Scenario, type Stage, VARIABLES, visit } from '../stage.ts';

const PATH = '/api/v2/subscription/';
const LIMIT = Number(VARIABLES.RATE_LIMIT_PER_MINUTE);
const LOGINS = 20;

/** What an answer says of a limit: how many are left, of how many. */
function leftOf({ headers }: TextAnswer, name: 'account' | 'address'): readonly [left: number, of: number] {
  const left = new RegExp(`^"${name}";r=(\\d+);t=([1-9]|[1-5]\\d|60)$`).exec(headers['ratelimit'] ?? '')?.[1];
  const of = new RegExp(`^"${name}";q=(\\d+);w=60$`).exec(headers['ratelimit-policy'] ?? '')?.[1];
  return [Number(left), Number(of)];
}

function expectTurnedAway(answer: TextAnswer): void {
  const problem = expectProblem(answer, 429, 'rate_limited');
  expect(answer.headers['retry-after']).toMatch(/^([1-9]|[1-5]\d|60)$/);
  expect(problem).toMatchObject({ retryable: true, retry_after: Number(answer.headers['retry-after']) });
  expect(problem).not.toHaveProperty('outcome');
}

let addresses = 0;

/** Of a client who has never asked before; in a network that is for documentation (RFC 5737). */
const newAddress = () => `203.0.113.${++addresses}`;

const logIn = (stage: Stage, address: string) =>
  call(stage.gateway, {
    path: '/api/v2/login/social/',
    body: { provider: 'sandbox', code: 'sandbox-code-paid', redirect_uri: 'https://app.example/callback' },
    headers: { ...from(address), 'x-request-id': `login-from-${address}` },
  });

/** How much one account, and one address, may ask. */
export const limitScenarios: readonly Scenario[] = [
  {
    name: 'answers say how many requests an account has left, whatever it asks for and however that ends',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const lefts = [];
      for (const path of [PATH, PATH, '/bff/v1/account-overview', '/api/v2/payment/transaction/9/'])
        lefts.push(leftOf(await visitor.call({ path }), 'account'));
      lefts.push(leftOf(await visitor.call({ path: '/api/v2/apikey/', body: {} }), 'account'));
      expect(lefts).toEqual([1, 2, 3, 4, 5].map((used) => [LIMIT - used, LIMIT]));
    },
  },
  {
    name: 'beyond its limit an account is told when to come again, the upstream hears nothing, and others are served',
    async run(stage) {
      const [visitor, other] = [await visit(stage, 'paid'), await visit(stage, 'paid')];
      for (let used = 1; used <= LIMIT; used++) {
        const answer = await visitor.call({ path: PATH });
        expect([answer.status, leftOf(answer, 'account')]).toEqual([200, [LIMIT - used, LIMIT]]);
      }
      const requests = [{ id: 'a', path: PATH }];
      for (const beyond of [
        { path: PATH },
        { path: '/bff/v1/account-overview' },
        { path: '/api/v2/subscription/checkout/purchase/', body: { proxy_countries: { US: 1 } } },
        { path: '/bff/v1/batch', body: { requests } },
      ]) {
        const answer = await visitor.call(beyond);
        expectTurnedAway(answer);
        expect(leftOf(answer, 'account')).toEqual([0, LIMIT]);
      }
      expect(await visitor.upstreamCalls()).toEqual(['getSubscription']);
      expect(await other.call({ path: PATH })).toMatchObject({ status: 200 });
    },
  },
  {
    name: 'an address may log in twenty times a minute, and another one is served after it',
    async run(stage) {
      const [address, another] = [newAddress(), newAddress()];
      for (let used = 1; used <= LOGINS; used++) {
        const answer = await logIn(stage, address);
        expect([answer.status, leftOf(answer, 'address')]).toEqual([200, [LOGINS - used, LOGINS]]);
      }
      expectTurnedAway(await logIn(stage, address));
      expect(stage.sandbox.sentTo(`login-from-${address}`)).toHaveLength(LOGINS);
      expect(leftOf(await logIn(stage, another), 'address')).toEqual([LOGINS - 1, LOGINS]);
    },
  },
];
