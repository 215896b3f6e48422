import { expect, onTestFinished, test } from 'vitest';
import { EXPOSED } from '../http/cors.ts';
import { openOverviews } from '../overviews/helpers.ts';
import { exampleBody } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';
import { servePage } from './chromium.ts';

/** A gateway, and what a page could read of it: one of an origin that is allowed, or of another. */
async function visit({ isAllowed }: { readonly isAllowed: boolean }) {
  const page = await servePage();
  onTestFinished(() => page[Symbol.asyncDispose]());
  const world = await openOverviews({
    ALLOWED_ORIGINS: isAllowed ? page.origin : 'https://app.example',
    RATE_LIMIT_PER_MINUTE: '600',
  });
  const { upstream, gateway, token } = world;
  upstream.on('POST /api/v2/apikey/', json(200, exampleBody('createApiKey')));
  upstream.on('PATCH /api/v2/referral/config/', json(200, exampleBody('updateReferralConfig')));
  upstream.on('DELETE /api/v2/payment/method/', json(204, ''));
  upstream.on('GET /api/v2/notification/', json(429, { detail: 'slow down' }, { 'Retry-After': '7' }));
  world.on({ path: '/api/v2/notification/?dismissed_at__isnull=True' }, json(200, exampleBody('listNotifications')));
  const { timing, ...found } = await page.visit({ gateway: gateway.url, token, exposed: EXPOSED });
  return { found, timing, upstream };
}

test('a page on an origin that is allowed reads, writes, and sees problems, times and headers', async () => {
  const { found, timing } = await visit({ isAllowed: true });
  expect(found).toMatchObject({
    read: {
      status: 200,
      text: exampleBody('getSubscription'),
      headers: {
        ETag: expect.stringMatching(/^"/),
        Age: '0',
        'Cache-Status': 'portico; fwd=miss; stored',
        RateLimit: expect.stringContaining('r='),
        'RateLimit-Policy': expect.stringContaining('q=600'),
        'Server-Timing': expect.stringContaining('total;dur='),
        'X-Request-Id': 'of-the-page',
        'X-Frame-Options': null,
      },
    },
    unchanged: { status: 304, headers: { 'Cache-Status': expect.stringContaining('hit') } },
    head: { status: 200, text: '' },
    fresh: { status: 200, headers: { 'Cache-Status': expect.stringContaining('fwd') } },
    write: { status: 200, headers: { 'Idempotency-Replayed': null } },
    again: { status: 200, headers: { 'Idempotency-Replayed': 'true' } },
    patch: { status: 200 },
    remove: { status: 204 },
    lines: { status: 200, text: expect.stringMatching(/\{"complete":true\}\n$/) },
    batch: { status: 200 },
    problem: { status: 429, headers: { 'Retry-After': '7' }, text: expect.stringContaining('"code":"rate_limited"') },
    unauthenticated: { status: 401, text: expect.stringContaining('"code":"unauthenticated"') },
    nothing: { status: 404, text: expect.stringContaining('"code":"unknown_endpoint"') },
    tooLong: { status: 431 },
    otherHeader: { blocked: 'TypeError' },
    otherMethod: { blocked: 'TypeError' },
    cookies: { blocked: 'TypeError' },
  });
  expect(timing).toEqual(['upstream', 'total']);
});

test('a page on another origin gets nothing, and nothing that it asked for was done', async () => {
  const { found, timing, upstream } = await visit({ isAllowed: false });
  expect(new Set(Object.values(found).map((one) => 'blocked' in one && one.blocked))).toEqual(new Set(['TypeError']));
  expect(timing).toEqual([]);
  expect(upstream.calls).toEqual([]);
});
