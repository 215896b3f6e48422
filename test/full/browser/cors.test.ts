import { expect, test } from 'vitest';
import { secret } from '../../support/secrets.ts';
import { answer } from '../../support/upstream.ts';
import { type Got, openGateway, openPage, openSite, PAGE, run, withChromium } from './browser.ts';

const openContext = withChromium();

const READ = '/api/v2/subscription/';

interface Asked {
  readonly headers?: object;
  readonly method?: string;
  readonly body?: string;
  readonly credentials?: string;
}

/** A gateway, and what a page can read of it, call by call: a page of an origin that is allowed, or of another. */
async function visit({ isAllowed }: { readonly isAllowed: boolean }) {
  const { origin } = await openSite('127.0.0.1');
  const ALLOWED_ORIGINS = isAllowed ? origin : 'https://app.example';
  const { upstream, gateway, token } = await openGateway({ ALLOWED_ORIGINS, RATE_LIMIT_PER_MINUTE: '600' });
  upstream.next('listTransactions', answer(429, { detail: 'slow down' }, { 'retry-after': '7' }));
  const page = await openPage(await openContext(), origin + PAGE);
  const send = (path: string, options: object = {}) => run<Got>(page, 'ask', gateway.url + path, options);
  const ask = (path: string, { headers = {}, ...options }: Asked = {}) =>
    send(path, { headers: { Authorization: `Token ${token}`, ...headers }, ...options });
  const write = (path: string, method: string, body: object, headers = {}) =>
    ask(path, { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } });
  const key = { 'Idempotency-Key': secret() };
  const read = await ask(READ, { headers: { 'X-Request-Id': 'of-the-page' } });
  const found = {
    read,
    unchanged: await ask(READ, { headers: { 'If-None-Match': read.headers?.['etag'] ?? '*' } }),
    head: await ask(READ, { method: 'HEAD' }),
    write: await write('/api/v2/apikey/', 'POST', { label: 'x' }, key),
    again: await write('/api/v2/apikey/', 'POST', { label: 'x' }, key),
    patch: await write('/api/v2/referral/config/', 'PATCH', { mode: 'credits' }),
    remove: await ask('/api/v2/payment/method/', { method: 'DELETE' }),
    lines: await ask('/bff/v1/account-overview', { headers: { Accept: 'application/x-ndjson' } }),
    problem: await ask('/api/v2/payment/transaction/'),
    unauthenticated: await send(READ),
    tooLong: await send(`/${'x'.repeat(20_000)}`),
    otherHeader: await ask(READ, { headers: { 'X-Other': 'x' } }),
    otherMethod: await ask(READ, { method: 'LINK' }),
    cookies: await ask(READ, { credentials: 'include' }),
  };
  return { found, timing: await run(page, 'timing', gateway.url + READ), upstream };
}

const code = (name: string) => expect.stringContaining(`"code":"${name}"`) as string;

test('a page on an origin that is allowed reads, writes, and sees problems, times and headers', async () => {
  const { found, timing } = await visit({ isAllowed: true });
  expect(found).toMatchObject({
    read: {
      status: 200,
      headers: {
        etag: expect.stringMatching(/^"/) as string,
        age: '0',
        'cache-status': 'portico; fwd=miss; stored',
        ratelimit: expect.stringContaining('r=') as string,
        'ratelimit-policy': expect.stringContaining('q=600') as string,
        'server-timing': expect.stringContaining('total;dur=') as string,
        'x-request-id': 'of-the-page',
      },
    },
    unchanged: { status: 304, headers: { 'cache-status': expect.stringContaining('hit') as string } },
    head: { status: 200, text: '' },
    write: { status: 200 },
    again: { status: 200, headers: { 'idempotency-replayed': 'true' } },
    patch: { status: 200 },
    remove: { status: 204 },
    lines: { status: 200, text: expect.stringMatching(/\{"complete":true,"etag":[^}]+\}\n$/) as string },
    problem: { status: 429, headers: { 'retry-after': '7' }, text: code('rate_limited') },
    unauthenticated: { status: 401, text: code('unauthenticated') },
    tooLong: { status: 431 },
    otherHeader: { blocked: 'TypeError' },
    otherMethod: { blocked: 'TypeError' },
    cookies: { blocked: 'TypeError' },
  });
  expect(found.read.headers).not.toHaveProperty('x-content-type-options'); // is not shown to other origins
  expect(timing).toEqual(['upstream', 'total']);
});

test('a page on another origin gets nothing, and nothing that it asked for was done', async () => {
  const { found, timing, upstream } = await visit({ isAllowed: false });
  expect(new Set(Object.values(found).map(({ blocked }) => blocked))).toEqual(new Set(['TypeError']));
  expect([timing, upstream.calls]).toEqual([[], []]);
});
