import { expect, test } from 'vitest';
import { EXPOSED } from '../http/cors.ts';
import { openOverviews } from '../overviews/helpers.ts';
import { exampleBody } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';
import { openPage, run, withChromium } from './browser.ts';
import { type Got, openSite, PAGE } from './sites.ts';

const openContext = withChromium();

const NAMES = [...EXPOSED.split(', '), 'X-Content-Type-Options'];
const READ = '/api/v2/subscription/';

/** A gateway, and a page that calls it: one of an origin that is allowed, or of another. */
async function open({ isAllowed }: { readonly isAllowed: boolean }) {
  const { origin } = await openSite('127.0.0.1');
  const world = await openOverviews({
    ALLOWED_ORIGINS: isAllowed ? origin : 'https://app.example',
    RATE_LIMIT_PER_MINUTE: '600',
  });
  const { upstream, gateway, token } = world;
  upstream.on('POST /api/v2/apikey/', json(200, exampleBody('createApiKey')));
  upstream.on('PATCH /api/v2/referral/config/', json(200, exampleBody('updateReferralConfig')));
  upstream.on('DELETE /api/v2/payment/method/', json(204, ''));
  upstream.on('GET /api/v2/notification/', json(429, { detail: 'slow down' }, { 'Retry-After': '7' }));
  world.on({ path: '/api/v2/notification/?dismissed_at__isnull=True' }, json(200, exampleBody('listNotifications')));
  const page = await openPage(await openContext(), origin + PAGE);
  const urlOf = (path: string) => gateway.url + path;
  const send = async (path: string, options: object = {}) => {
    const { headers, ...got } = await run<Got>(page, 'ask', urlOf(path), options);
    return { ...got, headers: Object.fromEntries(NAMES.map((name) => [name, headers?.[name.toLowerCase()] ?? null])) };
  };
  const credential = { Authorization: `Token ${token}` };
  const ask = (path: string, { headers = {}, ...options }: Asked = {}) =>
    send(path, { headers: { ...credential, ...headers }, ...options });
  const write = (path: string, method: string, body: object, headers = {}) =>
    ask(path, { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } });
  const timing = () => run<readonly string[]>(page, 'timing', urlOf(READ));
  return { upstream, send, ask, write, timing };
}

interface Asked {
  readonly headers?: object;
  readonly method?: string;
  readonly body?: string;
  readonly credentials?: string;
}

/** What the page can read, call by call. */
async function visit(options: Parameters<typeof open>[0]) {
  const { upstream, send, ask, write, timing } = await open(options);
  const lines = { Accept: 'application/x-ndjson', Prefer: 'handling=strict' };
  const key = { 'Idempotency-Key': 'of-the-page' };
  const read = await ask(READ, { headers: { 'X-Request-Id': 'of-the-page' } });
  const found = {
    read,
    unchanged: await ask(READ, { headers: { 'If-None-Match': read.headers['ETag'] ?? '*' } }),
    head: await ask(READ, { method: 'HEAD' }),
    fresh: await ask(READ, { headers: { 'Cache-Control': 'no-cache' } }),
    write: await write('/api/v2/apikey/', 'POST', { label: 'x' }, key),
    again: await write('/api/v2/apikey/', 'POST', { label: 'x' }, key),
    patch: await write('/api/v2/referral/config/', 'PATCH', { mode: 'credits' }),
    remove: await ask('/api/v2/payment/method/', { method: 'DELETE' }),
    lines: await ask('/bff/v1/account-overview', { headers: lines }),
    batch: await write('/bff/v1/batch', 'POST', { requests: [{ id: 'a', path: READ }] }),
    problem: await ask('/api/v2/notification/'),
    unauthenticated: await send(READ),
    nothing: await send('/nothing'),
    tooLong: await send(`/${'x'.repeat(20_000)}`),
    otherHeader: await ask(READ, { headers: { 'X-Other': 'x' } }),
    otherMethod: await ask(READ, { method: 'PUT' }),
    cookies: await ask(READ, { credentials: 'include' }),
  };
  return { found, timing: await timing(), upstream };
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
        'X-Content-Type-Options': null,
      },
    },
    unchanged: { status: 304, headers: { 'Cache-Status': expect.stringContaining('hit') } },
    head: { status: 200, text: '' },
    fresh: { status: 200, headers: { 'Cache-Status': expect.stringContaining('fwd') } },
    write: { status: 200, headers: { 'Idempotency-Replayed': null } },
    again: { status: 200, headers: { 'Idempotency-Replayed': 'true' } },
    patch: { status: 200 },
    remove: { status: 204 },
    lines: { status: 200, text: expect.stringMatching(/\{"complete":true,"etag":[^}]+\}\n$/) },
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
  expect(new Set(Object.values(found).map(({ blocked }) => blocked))).toEqual(new Set(['TypeError']));
  expect(timing).toEqual([]);
  expect(upstream.calls).toEqual([]);
});
