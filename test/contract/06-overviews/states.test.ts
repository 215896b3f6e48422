import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { ACCOUNT, REFERRAL, SECTIONS, withCard, namesIn } from './helpers.ts';

/** Longer than a copy may be given before the upstream is asked. */
const OLD_SECONDS = 400;

everywhere(
  says(
    '`state`: `fresh`, `stale`, `failed`, `skipped` (what it depends on failed), `not_applicable` (a subscription without a card)',
  ),
  async ({ ask, call, upstream, pass }) => {
    upstream.next('getSubscription', answer(404), withCard('null'));
    const skipped = (await call(`${ACCOUNT}?sections=payment_method`)).json;
    expect(skipped.errors).toMatchObject([{ section: 'payment_method', code: 'not_found', status: 404 }]);
    expect(skipped.meta).toEqual({ complete: false, sections: { payment_method: { state: 'skipped' } } });
    await ask('listNotifications', { path: '/api/v2/notification/?dismissed_at__isnull=True' });
    await pass(20);
    upstream.next('getReferralConfig', answer(400));
    const { sections } = (await call(ACCOUNT)).json.meta;
    expect(sections.subscription).toMatchObject({ state: 'fresh' });
    expect(sections.notifications).toEqual({ state: 'stale', age: expect.any(Number) as number });
    expect([sections.payment_method, sections.referral_config]).toEqual([
      { state: 'not_applicable' },
      { state: 'failed' },
    ]);
  },
  { time: true },
);

everywhere(
  `${says('A stale section whose call failed has that `code`.')} ${says('A stale copy beats a failure.')}`,
  async ({ call, upstream, pass }) => {
    const first = await call(REFERRAL);
    await pass(OLD_SECONDS);
    for (const id of Object.values(SECTIONS[REFERRAL]!)) upstream.next(id, answer(500));
    const { json, cache } = await call(REFERRAL, { headers: { Prefer: 'handling=strict' } });
    expect([json.data, json.errors, json.meta.complete]).toEqual([first.json.data, [], true]);
    for (const name of namesIn(json.meta.sections))
      expect(json.meta.sections[name]).toMatchObject({ state: 'stale', code: 'upstream_bad_response' });
    expect(cache).toMatch(/^portico; hit; ttl=-\d+$/);
  },
  { time: true },
);

everywhere(says('A required section that fails fails the whole with its problem;'), async ({ call, upstream }) => {
  upstream.next('getSubscription', answer(500));
  const { status, json, headers } = await call(ACCOUNT);
  expect([status, headers.get('content-type')]).toEqual([502, 'application/problem+json']);
  expect(json).toMatchObject({ code: 'upstream_bad_response', instance: ACCOUNT, section: 'subscription' });
});

everywhere(says('so does any 401 or 403'), async ({ call, upstream }) => {
  const others = [upstream.hold('getSubscription'), upstream.hold('getReferralConfig')];
  const refusing = upstream.hold('listNotifications');
  const pending = call(ACCOUNT);
  const calls = await Promise.all([...others, refusing].map((one) => one.call));
  refusing.release(answer(403, { detail: 'Two factors.', code: '2fa_needed' }));
  expect(await pending).toMatchObject({ status: 403, code: '2fa_needed', json: { detail: 'Two factors.' } });
  for (const { left } of calls.slice(0, 2)) await left; // the others are given up
  for (const one of others) one.release();
});

everywhere(says('with `Prefer: handling=strict` any failure'), async ({ call, upstream }) => {
  const by = async (Prefer: string) => {
    const { status, headers } = await call(ACCOUNT, { headers: { Prefer } });
    return [status, headers.get('preference-applied')];
  };
  upstream.next('listNotifications', answer(500));
  expect(await by('respond-async, handling="strict"')).toEqual([502, null]);
  expect(await by('respond-async, handling="strict"')).toEqual([200, 'handling=strict']);
  expect(await by('handling=lenient, x-handling=strict')).toEqual([200, null]);
});

everywhere(
  says(
    'Another one: 200, `null`, an entry in `errors` (with `retry_after` where its problem has it), `no-store`, no `ETag`.',
  ),
  async ({ call, upstream }) => {
    upstream.next('listNotifications', answer(429, '', { 'retry-after': '7' }));
    const { status, json, headers } = await call(ACCOUNT);
    expect([status, headers.get('cache-control'), headers.get('etag')]).toEqual([200, 'no-store', null]);
    expect(namesIn(json.data)).toEqual(Object.keys(SECTIONS[ACCOUNT]!));
    expect(json.data.notifications).toBeNull();
    const error = { section: 'notifications', code: 'rate_limited', status: 429, retryable: true, retry_after: 7 };
    expect(json.errors).toEqual([{ ...error, detail: expect.any(String) as string }]);
  },
);

const { call, upstream } = openGateway();

test('the whole says what the problem of its required section says, and when to come again', async () => {
  upstream.next('getReferralConfig', answer(503, '', { 'retry-after': '9' }));
  const { status, json, headers } = await call(REFERRAL, { token: secret() });
  const is = { code: 'upstream_unavailable', status: 503, retry_after: 9, section: 'referral_config' };
  expect([status, json, headers.get('retry-after')]).toMatchObject([503, is, '9']);
});
