import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Answer, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, reset } from '../../support/upstream.ts';
import { DAY, summaryOf, UNKNOWN } from './helpers.ts';

const BUY = 'purchasePlan';
const OUTCOME = '/bff/v1/outcome';
const NOT_FOUND = '404 outcome_not_found';

/** What is said of a key: its state, or a problem. */
const told = (asked: Answer): unknown => {
  if (asked.status !== 200) return summaryOf(asked);
  expect([asked.headers.get('cache-control'), asked.headers.get('content-type')]).toEqual([
    'no-store',
    'application/json',
  ]);
  return asked.json;
};

everywhere(
  says('{"state":"done","status":200,"at":"…"}, under_way, unknown, or 404'),
  async ({ ask, call, upstream, me }) => {
    const asked = async () => told(await call(OUTCOME, { key: 'key' }));
    expect(await asked()).toBe(NOT_FOUND);
    const held = upstream.hold(BUY);
    const first = ask(BUY, { key: 'key' });
    await held.call;
    expect(await asked()).toEqual({ state: 'under_way' });
    held.release();
    expect((await first).status).toBe(200);
    const done = await asked();
    expect(done).toEqual({ state: 'done', status: 200, at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) });
    expect(await asked()).toEqual(done);
    upstream.next(BUY, reset());
    await ask(BUY, { key: 'lost' });
    expect(told(await call(OUTCOME, { key: 'lost' }))).toEqual({ state: 'unknown' });
    expect(told(await call(OUTCOME, { key: 'key', token: secret() }))).toBe(NOT_FOUND);
    expect(upstream.callsOf(me)).toHaveLength(2);
  },
);

const { ask, call, upstream, clock, pass } = openGateway();

describe(says('GET /bff/v1/outcome with Idempotency-Key:'), () => {
  test('the moment is that of the answer, and is told for 24 hours', async () => {
    const asking = { token: secret(), key: 'key' };
    await ask(BUY, asking);
    const done = { state: 'done', status: 200, at: new Date(clock.wall()).toISOString() };
    await pass(DAY - 1);
    expect(told(await call(OUTCOME, asking))).toEqual(done);
    await pass(1);
    expect(told(await call(OUTCOME, asking))).toBe(NOT_FOUND);
  });

  test('an answer that is too long to be kept: it was sent', async () => {
    const asking = { token: secret(), key: 'key' };
    upstream.next(BUY, answer(201, { text: 'x'.repeat(2_000_000) }));
    expect((await ask(BUY, asking)).status).toBe(201);
    expect(told(await call(OUTCOME, asking))).toEqual({ state: 'unknown' });
    expect(summaryOf(await ask(BUY, asking))).toBe(UNKNOWN);
  });

  test('a key has to be there, and be one; a credential comes first', async () => {
    for (const own of [{}, { key: '' }, { key: 'a b' }, { key: 'k'.repeat(256) }]) {
      const { code, json } = await call(OUTCOME, own);
      expect([code, json.errors]).toMatchObject(['validation_failed', [{ field: 'Idempotency-Key' }]]);
      expect(summaryOf(await call(OUTCOME, { ...own, token: null }))).toBe('401 unauthenticated');
    }
  });
});

const env = { SESSIONS: 'true', SECRETS: 'for-development-only-and-known-to-all' };
const page = { token: null, headers: { 'sec-fetch-site': 'same-origin' } };

test(`${says('GET /bff/v1/outcome')}: by cookie it is of the account`, async () => {
  const browser = openGateway(env);
  const token = secret();
  const { headers } = await browser.call('/bff/v1/session', { ...page, body: { token } });
  const own = { ...page.headers, cookie: headers.get('set-cookie')!.split(';')[0]! };
  await browser.ask(BUY, { token: null, key: 'key', headers: own });
  for (const one of [{ token: null, headers: own }, { token }])
    expect(told(await browser.call(OUTCOME, { key: 'key', ...one }))).toMatchObject({ state: 'done' });
  const foreign = { ...own, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
  expect(told(await browser.call(OUTCOME, { token: null, key: 'key', headers: foreign }))).toBe('403 origin_rejected');
});

test(`${says('each problem of an unknown outcome says so, and has no Retry-After')}: a sign-in`, async () => {
  const browser = openGateway(env);
  browser.upstream.next('loginSocial', reset());
  const asking = { ...page, path: '/bff/v1/session/login', key: 'key' };
  expect(summaryOf(await browser.ask('loginSocial', asking))).toBe('502 upstream_unreachable unknown');
  expect(summaryOf(await browser.ask('loginSocial', asking))).toBe(UNKNOWN);
});
