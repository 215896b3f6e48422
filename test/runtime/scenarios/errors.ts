import { expect } from 'vitest';
import { call } from '../../support/http.ts';
import { expectProblem, fail, hold, type Scenario, visit } from '../stage.ts';

/** What a fault of the upstream does to a write, which is never sent twice. */
const FAILURES = [
  {
    what: 'an answer of 500',
    fault: { status: 500, body: '<h1>Oops</h1>' },
    status: 502,
    code: 'upstream_bad_response',
  },
  { what: 'an answer of 503', fault: { status: 503 }, status: 503, code: 'upstream_unavailable' },
  { what: 'an answer of 504', fault: { status: 504 }, status: 504, code: 'upstream_timeout' },
  { what: 'JSON that ends too early', fault: { malformed: true }, status: 502, code: 'upstream_bad_response' },
  {
    what: 'a redirect',
    fault: { status: 302, headers: { location: '/x' } },
    status: 502,
    code: 'upstream_bad_response',
  },
  { what: 'a connection that is cut', fault: { reset: true }, status: 502, code: 'upstream_unreachable' },
] as const;

const failureScenarios = FAILURES.map(({ what, fault, status, code }): Scenario => ({
  name: `${what} is ${status} ${code} with an unknown outcome, after one call`,
  async run(stage) {
    const visitor = await visit(stage, 'paid');
    await fail(stage, { operation: 'createApiKey', ...fault });
    const answer = await visitor.call({ path: '/api/v2/apikey/', body: { label: 'x' } });
    expect(expectProblem(answer, status, code).outcome).toBe('unknown');
    expect(answer.headers).not.toHaveProperty('retry-after');
    expect(await visitor.upstreamCalls()).toEqual(['createApiKey']);
  },
}));

const REFUSALS = [
  { as: 'suspended', status: 403, code: 'account_suspended' },
  { as: 'twofactor', status: 403, code: '2fa_needed' },
] as const;

const refusalScenarios = REFUSALS.map(({ as, status, code }): Scenario => ({
  name: `an account in the state of ${as} is refused as ${code}, overviews included`,
  async run(stage) {
    const visitor = await visit(stage, as);
    expectProblem(await visitor.call({ path: '/api/v2/subscription/' }), status, code);
    expectProblem(await visitor.call({ path: '/bff/v1/account-overview' }), status, code);
  },
}));

/** What the gateway says no to without asking anyone. */
const NEVER_SENT = [
  { what: 'an unknown path', call: { path: '/api/v2/nothing/' }, status: 404, code: 'unknown_endpoint' },
  { what: 'a path outside of the API', call: { path: '/admin' }, status: 404, code: 'unknown_endpoint' },
  { what: 'an id that is none', call: { path: '/api/v2/apikey/x1/' }, status: 404, code: 'unknown_endpoint' },
  { what: 'an encoded slash', call: { path: '/api/v2/apikey%2f1/' }, status: 404, code: 'unknown_endpoint' },
  {
    what: 'the DELETE of one payment method',
    call: { method: 'DELETE', path: '/api/v2/payment/method/1071/' },
    status: 405,
    code: 'method_not_allowed',
    allow: 'GET, HEAD',
  },
  {
    what: 'a PUT',
    call: { method: 'PUT', path: '/api/v2/payment/method/', body: {} },
    status: 405,
    code: 'method_not_allowed',
    allow: 'GET, HEAD, DELETE',
  },
  {
    what: 'a bad parameter',
    call: { path: '/api/v2/subuser/1081/?plan_id=x' },
    status: 400,
    code: 'validation_failed',
  },
  { what: 'no JSON', call: { path: '/api/v2/apikey/', body: '{"label":' }, status: 400, code: 'malformed_json' },
  {
    what: 'a field that may not be written',
    call: { method: 'PATCH', path: '/api/v2/referral/config/', body: { id: 1 } },
    status: 400,
    code: 'validation_failed',
  },
  {
    what: 'a body of another type',
    call: { path: '/api/v2/apikey/', body: 'label=x', headers: { 'content-type': 'text/plain' } },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    what: 'a body that is too large',
    call: { path: '/api/v2/apikey/', body: { label: 'x'.repeat(70_000) } },
    status: 413,
    code: 'payload_too_large',
  },
] as const;

const neverSentScenarios = NEVER_SENT.map(({ what, call: options, status, code, ...more }): Scenario => ({
  name: `${what} is ${status} ${code}, and the upstream hears nothing of it`,
  async run(stage) {
    const visitor = await visit(stage, 'paid');
    const answer = await visitor.call(options);
    expectProblem(answer, status, code);
    expect(answer.headers['allow']).toBe('allow' in more ? more.allow : undefined);
    expect(await visitor.upstreamCalls()).toEqual([]);
  },
}));

export const errorScenarios: readonly Scenario[] = [
  ...failureScenarios,
  ...refusalScenarios,
  ...neverSentScenarios,
  {
    name: 'no credential, or one of another form, is 401 without a call',
    async run(stage) {
      const before = await call(stage.sandbox.url, { path: '/_sandbox/calls' });
      for (const headers of [{}, { authorization: 'Basic dTpw' }, { authorization: 'Token' }]) {
        const answer = await call(stage.gateway, { path: '/api/v2/subscription/', headers });
        expectProblem(answer, 401, 'unauthenticated');
        expect(answer.headers['www-authenticate']).toBe('Token');
      }
      const after = await call(stage.sandbox.url, { path: '/_sandbox/calls' });
      expect((after.json as unknown[]).length).toBe((before.json as unknown[]).length);
    },
  },
  {
    name: 'a credential that the upstream does not know is 401 too',
    async run(stage) {
      const answer = await call(stage.gateway, { path: '/api/v2/subscription/', token: 'nobody' });
      expectProblem(answer, 401, 'unauthenticated');
      expect(answer.headers['www-authenticate']).toBe('Token');
    },
  },
  {
    name: 'refusals of the upstream keep status, code and fields',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const gone = await visitor.call({ path: '/api/v2/payment/transaction/2201/' });
      expectProblem(gone, 404, 'not_found');
      const plan = await visitor.call({ method: 'DELETE', path: '/api/v2/payment/method/' });
      expect(expectProblem(plan, 400, 'paid_plan_active').errors).toMatchObject([{ code: 'paid_plan_active' }]);
      const list = await visitor.call({ method: 'POST', path: '/api/v2/subuser/1082/refresh/' });
      expect(expectProblem(list, 400, 'validation_failed').errors).toMatchObject([
        { code: 'custom_proxy_list_required', field: 'detail' },
      ]);
    },
  },
  {
    name: 'an upstream that gives no answer in time is 504, and its connection is closed',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const at = await hold(stage, 'startIdVerification');
      const left = stage.sandbox.left(visitor.nextId());
      const answer = await visitor.call({ method: 'POST', path: '/api/v2/idverification/start/' });
      expect(expectProblem(answer, 504, 'upstream_timeout').outcome).toBe('unknown');
      await left;
      at.release();
    },
  },
];
