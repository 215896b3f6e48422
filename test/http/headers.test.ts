import { beforeEach, describe, expect, test } from 'vitest';
import { expectCommonHeaders, expectProblem } from './problem.ts';
import { exampleBody } from '../support/examples.ts';
import { requestText } from '../support/raw-client.ts';
import { bytes, httpResponse, json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { type Env, openWorld, useWorld } from '../support/world.ts';

const stage = useWorld();

const PATH = '/api/v2/subscription/';
const BODY = exampleBody('getSubscription');

type Headers = readonly (readonly [string, string])[];

beforeEach(() => {
  stage.upstream.on(`GET ${PATH}`, json(200, BODY));
});

const get = (headers: Headers, token = secret()) =>
  stage.raw(requestText({ target: PATH, headers: [['Authorization', `Token ${token}`], ...headers] }));

/** What the upstream was sent, for a request with these headers. */
const sentWith = async (headers: Headers) => {
  const answer = await get(headers);
  expect(answer.status).toBe(200);
  return { answer, sent: stage.upstream.calls.at(-1)?.headers ?? {} };
};

/** An account that has read the subscription, and the tag it got. */
const reader = async () => {
  const token = secret();
  const { headers } = await get([], token);
  return { token, etag: headers['etag'] ?? '' };
};

describe('a request id', () => {
  test.each(['a', 'A-z_0.9', 'x'.repeat(128)])('of the client is kept: %s', async (id) => {
    const { answer, sent } = await sentWith([['X-Request-Id', id]]);
    expect([answer.headers['x-request-id'], sent['x-request-id']]).toEqual([id, id]);
    const refused = await stage.raw(requestText({ target: '/nothing', headers: [['X-Request-Id', id]] }));
    expectProblem(refused, { status: 404, code: 'unknown_endpoint' });
    expect(refused.headers['x-request-id']).toBe(id);
  });

  test.each(['', 'a b', 'a,b', 'a/b', 'a"b', 'é', '<script>', 'x'.repeat(129)])(
    'that is no good is replaced: %j',
    async (id) => {
      const { answer, sent } = await sentWith([['X-Request-Id', id]]);
      expect(answer.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{8,128}$/);
      expect(answer.headers['x-request-id']).not.toBe(id);
      expect(sent['x-request-id']).toBe(answer.headers['x-request-id']);
    },
  );

  test('that comes twice is replaced', async () => {
    const { answer } = await sentWith([
      ['X-Request-Id', 'one'],
      ['X-Request-Id', 'two'],
    ]);
    expect(answer.headers['x-request-id']).not.toMatch(/one|two/);
  });

  test('is another one for each request', async () => {
    const [one, two] = [await get([]), await get([])];
    expect(one.headers['x-request-id']).not.toBe(two.headers['x-request-id']);
  });
});

describe('a trace', () => {
  const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
  const SPAN_ID = 'b7ad6b7169203331';
  const parent = (flags = '01') => `00-${TRACE_ID}-${SPAN_ID}-${flags}`;

  test.each(['00', '01'])('is continued with a span of its own, flags %s', async (flags) => {
    const { sent } = await sentWith([
      ['traceparent', parent(flags)],
      ['tracestate', 'vendor=a,other=b'],
    ]);
    const [version, traceId, spanId, sentFlags] = sent['traceparent']?.split('-') ?? [];
    expect({ version, traceId, sentFlags }).toEqual({ version: '00', traceId: TRACE_ID, sentFlags: flags });
    expect(spanId).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
    expect(spanId).not.toBe(SPAN_ID);
    expect(sent['tracestate']).toBe('vendor=a,other=b');
    expect(stage.gateway.lines.at(-1)?.trace_id).toBe(TRACE_ID);
  });

  test('of a later version is continued', async () => {
    const { sent } = await sentWith([['traceparent', `01-${TRACE_ID}-${SPAN_ID}-01-what-comes-then`]]);
    expect(sent['traceparent']).toContain(`00-${TRACE_ID}-`);
  });

  test('with its state in two headers is continued', async () => {
    const { sent } = await sentWith([
      ['traceparent', parent()],
      ['tracestate', 'vendor=a'],
      ['tracestate', 'other=b'],
    ]);
    expect(sent['tracestate']?.replaceAll(' ', '')).toBe('vendor=a,other=b');
  });

  test.each([
    ['no trace', ''],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN_ID}-01`],
    ['a span id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['capitals', parent().toUpperCase()],
    ['too few digits', `00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`],
    ['no flags', `00-${TRACE_ID}-${SPAN_ID}`],
    ['the version that is none', `ff-${TRACE_ID}-${SPAN_ID}-01`],
    ['more than its version has', `${parent()}-more`],
    ['two traces', `${parent()}, ${parent()}`],
  ])('is begun anew for %s, and its state dropped', async (_, traceparent) => {
    const { sent } = await sentWith([
      ['traceparent', traceparent],
      ['tracestate', 'vendor=a'],
    ]);
    expect(sent['traceparent']).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]$/);
    expect(sent['traceparent']).not.toContain(TRACE_ID);
    expect(sent).not.toHaveProperty('tracestate');
  });
});

describe('a conditional request', () => {
  test.each([
    ['the tag', (tag: string) => tag],
    ['the tag, weak', (tag: string) => `W/${tag}`],
    ['the tag in a list', (tag: string) => `"a", ${tag} ,W/"b"`],
    ['the tag at the end of a list without spaces', (tag: string) => `"a",W/${tag}`],
    ['anything', () => '*'],
  ])('that names %s gets 304 and no body', async (_, form) => {
    const { token, etag } = await reader();
    const answer = await get([['If-None-Match', form(etag)]], token);
    expect(answer).toMatchObject({ status: 304, body: '' });
    expectCommonHeaders(answer);
    const weak = `W/${etag}`;
    const own = form(etag).includes(weak) ? weak : etag; // as the client has it
    expect(answer.headers).toMatchObject({ etag: own, 'cache-control': 'private, no-cache', age: '0' });
    expect(answer.headers).not.toHaveProperty('content-type');
    expect(answer.headers['vary']).toContain('Authorization');
    expect(stage.upstream.calls).toHaveLength(1);
  });

  test.each([
    ['another tag', () => '"a"'],
    ['the tag without quotes', (tag: string) => tag.slice(1, -1)],
    ['the tag inside another', (tag: string) => `"x${tag.slice(1)}`],
    ['nothing', () => ''],
  ])('that names %s gets the whole', async (_, form) => {
    const { token, etag } = await reader();
    expect(await get([['If-None-Match', form(etag)]], token)).toMatchObject({ status: 200, body: BODY });
  });

  test('gets 304 from a fresh answer too, and with HEAD', async () => {
    const { etag } = await reader();
    const token = secret();
    expect((await get([['If-None-Match', etag]], token)).status).toBe(304);
    const headers = [
      ['Authorization', `Token ${token}`],
      ['If-None-Match', etag],
    ] as const;
    expect((await stage.raw(requestText({ method: 'HEAD', target: PATH, headers }))).status).toBe(304);
    expect(stage.upstream.calls).toHaveLength(2);
  });

  test('of what is never cached gets the whole', async () => {
    stage.upstream.on('GET /api/v2/apikey/1/', json(200, exampleBody('getApiKey')));
    const answer = await stage.call({ path: '/api/v2/apikey/1/', token: secret(), headers: { 'if-none-match': '*' } });
    expect(answer.status).toBe(200);
  });
});

describe('headers of the upstream', () => {
  const OWN = {
    'Set-Cookie': `sessionid=${secret('upstream')}; HttpOnly`,
    Server: 'nginx/1.0',
    'X-Powered-By': 'Django',
    'X-Frame-Options': 'ALLOWALL',
    'Access-Control-Allow-Origin': '*',
    'Strict-Transport-Security': 'max-age=0',
    'Content-Security-Policy': 'default-src *',
    'Cache-Control': 'public, max-age=9999',
    Expires: 'Tue, 09 Jun 2037 12:00:00 GMT',
    Age: '77',
    ETag: '"upstream"',
    Vary: 'Cookie',
    Location: 'https://internal.example/',
    'Content-Language': 'en',
    'Content-Type': 'text/html; charset=latin1',
    'Content-Disposition': 'attachment',
    'X-Request-Id': 'of-the-upstream',
    'WWW-Authenticate': 'Basic realm="internal"',
    Link: '<https://internal.example/>; rel=preload',
    Refresh: '0; url=https://internal.example/',
    'Keep-Alive': 'timeout=5',
    Allow: 'BREW',
    'X-RateLimit-Remaining': '3',
  };

  test.each([200, 400, 404, 500])('with status %i stop here', async (status) => {
    stage.upstream.on(`GET ${PATH}`, json(status, BODY, OWN));
    const answer = await get([]);
    expect(answer.status).toBe(status === 500 ? 502 : status);
    expectCommonHeaders(answer);
    const text = JSON.stringify(answer.rawHeaders);
    for (const value of Object.values(OWN)) if (value.length > 2) expect(text).not.toContain(value);
    expect(answer.headers['content-type']).toMatch(/^application\/(problem\+)?json$/);
    expect(answer.headers['age'] ?? '0').toBe('0');
  });

  test('of a 204 stop here, and it has no type of its own', async () => {
    stage.upstream.on(
      'DELETE /api/v2/payment/method/',
      bytes(httpResponse(204, '', { ...OWN, 'Content-Length': '0' })),
    );
    const headers = [['Authorization', `Token ${secret()}`]] as const;
    const answer = await stage.raw(requestText({ method: 'DELETE', target: '/api/v2/payment/method/', headers }));
    expect(answer).toMatchObject({ status: 204, body: '' });
    expectCommonHeaders(answer);
    expect(answer.headers).not.toHaveProperty('content-type');
  });

  test('that come a hundred times do no harm', async () => {
    const many = Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`X-Header-${at}`, 'x'.repeat(100)]));
    stage.upstream.on(`GET ${PATH}`, json(200, BODY, many));
    expect((await get([])).status).toBe(200);
  });
});

const post = (key: string) =>
  stage.call({ path: '/api/v2/apikey/', token: secret(), body: {}, headers: { 'idempotency-key': key } });

describe('an idempotency key', () => {
  test('of a POST is sent on', async () => {
    stage.upstream.on('POST /api/v2/apikey/', json(200, exampleBody('createApiKey')));
    expect((await post('a-key-of-the-client')).status).toBe(200);
    expect(stage.upstream.calls.at(-1)?.headers['idempotency-key']).toBe('a-key-of-the-client');
  });

  test.each(['', 'a b', 'k'.repeat(256)])('that is none is refused: %j', async (key) => {
    const { errors } = expectProblem(await post(key), { status: 400, code: 'validation_failed' });
    expect(errors).toMatchObject([{ field: 'Idempotency-Key' }]);
    expect(stage.upstream.calls).toEqual([]);
  });
});

describe('Strict-Transport-Security', () => {
  const HSTS = 'strict-transport-security';

  test.each<[string, Env, Record<string, string>, boolean]>([
    ['by https, as a trusted proxy says', { TRUSTED_PROXIES: '127.0.0.1' }, { 'X-Forwarded-Proto': 'https' }, true],
    ['by https, as PUBLIC_URL says', { PUBLIC_URL: 'https://api.example' }, {}, true],
    ['by http, through a trusted proxy', { TRUSTED_PROXIES: '127.0.0.1' }, { 'X-Forwarded-Proto': 'http' }, false],
    ['by http, whatever somebody says who is not trusted', {}, { 'X-Forwarded-Proto': 'https' }, false],
  ])('%s', async (_, variables, headers, isSent) => {
    const world = await openWorld(variables);
    world.upstream.on(`GET ${PATH}`, json(200, BODY));
    for (const path of [PATH, '/nothing', '/problems']) {
      const answer = await world.call({ path, token: secret(), headers });
      expect([path, answer.headers[HSTS]]).toEqual([path, isSent ? 'max-age=31536000' : undefined]);
    }
  });
});
