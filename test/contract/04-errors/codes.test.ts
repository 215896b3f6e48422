import { expect, test } from 'vitest';
import { testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { expectProblem } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { sharedStores } from '../../support/stores.ts';
import { answer, hang, reset, transportBy } from '../../support/upstream.ts';

/** The rows of the table, each once; the rules of a section are tested there. */
everywhere(says("400, 400, 415, 413 | the client's input"), async ({ ask }) => {
  const plain = { headers: { 'content-type': 'text/plain' } };
  expectProblem(await ask('createApiKey', { body: '{' }), { status: 400, code: 'malformed_json' });
  expectProblem(await ask('createApiKey', { body: { label: 1 } }), { status: 400, code: 'validation_failed' });
  expectProblem(await ask('createApiKey', { body: '{}', ...plain }), { status: 415, code: 'unsupported_media_type' });
  const large = { body: { label: 'x'.repeat(65_536) } };
  expectProblem(await ask('createApiKey', large), { status: 413, code: 'payload_too_large' });
});

everywhere(says("401, 403 | no usable credential; the upstream's 401 and 403"), async ({ ask, upstream }) => {
  expectProblem(await ask('getApiKey', { token: null }), { status: 401, code: 'unauthenticated' });
  for (const id of ['getApiKey', 'createApiKey', 'getSubscription'] as const) {
    const token = secret();
    upstream.next(id, answer(401, { detail: 'Invalid token.', code: 'bad_token' }), answer(403, { detail: 'No.' }));
    const unknown = await ask(id, { token });
    expect(expectProblem(unknown, { status: 401, code: 'unauthenticated' }).detail).toBe('Invalid token.');
    expect(unknown.headers.get('www-authenticate')).toBe('Token');
    expectProblem(await ask(id, { token }), { status: 403, code: 'forbidden' });
  }
});

everywhere(says('404, 405 | nothing such here'), async ({ call }) => {
  expectProblem(await call('/nothing'), { status: 404, code: 'unknown_endpoint' });
  expectProblem(await call('/api/v2/apikey/'), { status: 405, code: 'method_not_allowed' });
});

everywhere(
  says("429, 503 | the gateway's or the upstream's limit; too many at once. `Retry-After`"),
  async ({ ask, upstream }) => {
    upstream.next('getApiKey', answer(429, { detail: 'Slow down.', code: 'throttled' }, { 'retry-after': '5' }));
    const token = secret();
    for (const id of ['getApiKey', 'createApiKey'] as const) {
      const got = await ask(id, { token });
      expectProblem(got, { status: 429, code: 'rate_limited' });
      expect(Number(got.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  },
  { not: ['fleet'] }, // what the upstream says holds the calls of one instance back
);

everywhere(
  says('`origin_rejected` | 403 | section 8'),
  async ({ call }) => {
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://other.example' };
    const got = await call('/bff/v1/session', { token: null, body: { token: secret() }, headers });
    expectProblem(got, { status: 403, code: 'origin_rejected' });
  },
  { env: { SESSIONS: 'true', SECRETS: 'for-development-only-and-known-to-all' } },
);

everywhere(
  says(
    '`idempotency_key_reused`, `idempotency_in_progress`, `outcome_unknown`, `outcome_not_found` | 422, 409, 409, 404 | section 7',
  ),
  async ({ ask, call, upstream, me }) => {
    const held = upstream.hold('createApiKey');
    const order = { token: me, key: 'one' };
    const first = ask('createApiKey', order);
    await held.call;
    expectProblem(await ask('createApiKey', order), { status: 409, code: 'idempotency_in_progress' });
    held.release(answer(500));
    expectProblem(await first, { status: 502, code: 'upstream_bad_response' });
    expectProblem(await ask('createApiKey', order), { status: 409, code: 'outcome_unknown' });
    const other = { ...order, body: { label: 'other' } };
    expectProblem(await ask('createApiKey', other), { status: 422, code: 'idempotency_key_reused' });
    expectProblem(await call('/bff/v1/outcome', { key: 'two' }), { status: 404, code: 'outcome_not_found' });
  },
);

everywhere(says('3xx, not JSON, cut short, too large, a 5xx other than 503 and 504'), async ({ ask, upstream }) => {
  const texts = ['<h1>Back soon</h1>', '', '{"a":', '{"a":NaN}', `${'['.repeat(65)}${']'.repeat(65)}`];
  const large = answer(200, `"${'x'.repeat(5_242_880)}"`);
  const statuses = [302, 500, 502, 599].map((status) => answer(status));
  for (const reply of [...texts.map((text) => answer(200, text)), large, ...statuses]) {
    upstream.next('createApiKey', reply);
    expectProblem(await ask('createApiKey', { token: secret() }), { status: 502, code: 'upstream_bad_response' });
  }
});

everywhere(says('`upstream_unreachable` | 502'), async ({ ask, upstream }) => {
  upstream.next('createApiKey', reset());
  const { outcome } = expectProblem(await ask('createApiKey'), { status: 502, code: 'upstream_unreachable' });
  expect(outcome).toBe('unknown');
});

everywhere(says('its 503, or the circuit is open. `Retry-After`'), async ({ ask, upstream }) => {
  upstream.next('getApiKey', answer(503, '', { 'retry-after': '7' }));
  const got = await ask('getApiKey');
  expect(expectProblem(got, { status: 503, code: 'upstream_unavailable' }).retry_after).toBe(7);
});

everywhere(
  says('no whole answer in time, or its 504'),
  async ({ ask, upstream, pass, me }) => {
    upstream.next('createApiKey', answer(504), hang());
    expectProblem(await ask('createApiKey', { token: secret() }), { status: 504, code: 'upstream_timeout' });
    const pending = ask('createApiKey', { token: me });
    await upstream.arrived('createApiKey', 2);
    await pass(5);
    expectProblem(await pending, { status: 504, code: 'upstream_timeout' });
    await upstream.callsOf(me)[0]!.left;
  },
  { time: true, not: ['workerd'] }, // a timer is needed
);

test(says('the shared store is needed and does not answer. `Retry-After`'), async () => {
  const clock = testClock();
  const { shelf, store } = sharedStores(clock);
  const { ask, upstream, pass } = openGateway({ SECRETS: 'for-development-only-and-known-to-all' }, { store, clock });
  await pass(60); // a store that is new is not asked for a while
  shelf.isAway = true;
  const pending = ask('purchasePlan', { key: 'one' });
  await pass(1);
  expectProblem(await pending, { status: 503, code: 'store_unavailable' });
  expect(upstream.calls).toEqual([]);
});

everywhere(says('the request has been here before (`Via`)'), async ({ ask, upstream, me }) => {
  await ask('getSubscription');
  const { via } = upstream.callsOf(me)[0]!.headers;
  for (const asking of [{}, { path: '/bff/v1/account-overview' }]) {
    const got = await ask('getSubscription', { ...asking, token: secret(), headers: { via: `1.0 fred, ${via}` } });
    expectProblem(got, { status: 508, code: 'loop_detected' });
  }
  expect((await ask('createApiKey', { headers: { via: via! } })).status).toBe(508);
  expect(upstream.callsOf(me)).toHaveLength(1);
});

test(says('`internal_error` | 500 | a fault of ours'), async () => {
  const { ask, lines } = openGateway(
    {},
    { transport: transportBy(() => Promise.reject(new TypeError('of the gateway'))) },
  );
  const got = await ask('getSubscription');
  expectProblem(got, { status: 500, code: 'internal_error' });
  expect(got.text).not.toContain('of the gateway');
  expect(lines.filter(({ level }) => level === 'error').length).toBeGreaterThan(0);
  expect(expectProblem(await ask('createApiKey'), { status: 500, code: 'internal_error' }).outcome).toBe('unknown');
});
