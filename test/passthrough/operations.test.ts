import { describe, expect, test } from 'vitest';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations } from '../support/account-api.ts';
import { expectCommonHeaders, textOf } from '../http/problem.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import type { CallOptions } from '../support/http.ts';
import { requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds } from '../support/table.ts';
import { useWorld } from '../support/world.ts';

const UNDOCUMENTED_QUERY = 'x_b=2&x_a=%7e%2F&x_b=1&x_empty=&x_flag&x_list[]=(1)&x_plus=a+b%20c';

/** What a client may try and no upstream may see: hop-by-hop, made-up identities, cookies, ranges. */
const unwantedHeaders = () =>
  [
    ['Cookie', `sessionid=${secret('cookie')}`],
    ['X-Forwarded-For', '203.0.113.9'],
    ['X-Forwarded-Host', 'elsewhere.example'],
    ['X-Forwarded-Proto', 'https'],
    ['Forwarded', 'for=203.0.113.9;host=elsewhere.example'],
    ['X-Real-IP', '203.0.113.9'],
    ['X-Subuser', '7'],
    ['X-HTTP-Method-Override', 'DELETE'],
    ['X-Original-URL', '/api/v2/apikey/1/'],
    ['Proxy-Authorization', `Basic ${secret('proxy')}`],
    ['Proxy-Connection', 'keep-alive'],
    ['Accept', 'text/html'],
    ['Accept-Encoding', 'br'],
    ['Accept-Language', 'fr'],
    ['Origin', 'https://elsewhere.example'],
    ['Referer', 'https://elsewhere.example/'],
    ['Range', 'bytes=0-1'],
    ['If-Modified-Since', 'Tue, 09 Jun 2026 12:00:00 GMT'],
    ['Via', '1.1 elsewhere'],
    ['TE', 'trailers'],
    ['Upgrade', 'h2c'],
    ['X-Hop', 'named by Connection'],
    ['Connection', 'x-hop, authorization, te, upgrade'],
  ] as const;

const stage = useWorld();

describe.each(allOperations.map((operation) => [operation.id, operation] as const))('%s', (id, row) => {
  const operation: Operation = row;
  const { method, path, query, body } = exampleInput(id);
  const status = operation.answer === null ? 204 : 200;
  const isSocial = operation.credential === 'none';
  const fullQuery = [query, UNDOCUMENTED_QUERY].filter(Boolean).join('&');

  const example = (origin: string) => {
    const next = { next: `${origin}${path}?page=3&x=%7e`, previous: `${origin}${path}` };
    return exampleBody(id, operation.paged && next);
  };

  /** A call that the operation accepts, to be changed. */
  const request = (changes: Partial<CallOptions> = {}): CallOptions => ({
    method,
    path,
    token: secret(),
    ...(body !== undefined && { body }),
    ...changes,
  });

  test.each([
    ['with the trailing slash and Token', path, 'Token'],
    ['without it and with Bearer', path.slice(0, -1), 'bearer'],
  ])('passes the call on, %s', async (_, clientPath, scheme) => {
    const key = secret();
    stage.upstream.once(`${method} ${path}`, json(status, example(stage.upstream.url)));
    const answer = await stage.raw(
      requestText({
        method,
        target: `${clientPath}?${fullQuery}`,
        headers: [
          ['Authorization', `${scheme} ${key}`],
          ['User-Agent', 'app/1.0 (test)'],
          ...unwantedHeaders(),
          ...(body === undefined ? [] : [['Content-Type', 'application/json; charset=utf-8'] as const]),
        ],
        ...(body !== undefined && { body }),
      }),
    );

    expect({ status: answer.status, body: textOf(answer) }).toEqual({
      status,
      body: example('http://gateway.example'),
    });
    expectCommonHeaders(answer);
    expect(answer.headers['content-type']).toBe(status === 204 ? undefined : 'application/json');

    const [sent] = stage.upstream.calls;
    expect(stage.upstream.calls).toHaveLength(1);
    expect(sent).toMatchObject({ method, target: `${path}?${fullQuery}`, body: body ?? '' });
    const { 'x-request-id': requestId, traceparent, via, ...headers } = sent?.headers ?? {};
    expect(requestId).toBe(answer.headers['x-request-id']);
    expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-9a-f]$/);
    expect(via).toMatch(/^1\.1 portico-[\w-]{12}$/);
    expect(headers).toEqual({
      host: new URL(stage.upstream.url).host,
      connection: 'keep-alive',
      accept: 'application/json',
      'user-agent': 'app/1.0 (test)',
      ...(!isSocial && { authorization: `Token ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(method !== 'GET' && method !== 'DELETE' && { 'content-length': String(Buffer.byteLength(body ?? '')) }),
    });
  });

  if (body !== undefined) {
    test('sends the body as it came, spaces and escapes included', async () => {
      const escaped = body.replaceAll(/"([a-z])/g, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`);
      const sentBody = ` ${escaped.replaceAll('":', '" :\t')}\r\n`;
      stage.upstream.once(`${method} ${path}`, json(status, example(stage.upstream.url)));
      await stage.call(request({ body: sentBody }));
      expect(stage.upstream.calls.map((sent) => sent.body)).toEqual([sentBody]);
    });
  }

  test('is not called with a method that it has not', async () => {
    const atPath = allOperations.filter((other) => other.path === operation.path).map((other) => other.method);
    const allowed = atPath.flatMap((known) => (known === 'GET' ? ['GET', 'HEAD'] : [known]));
    const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((other) => !allowed.includes(other));
    for (const other of others) {
      const answer = await stage.call(request({ method: other }));
      expect({ other, status: answer.status }).toEqual({ other, status: 405 });
      expect(answer.headers['allow']?.split(', ').toSorted()).toEqual(allowed.toSorted());
    }
    expect(stage.upstream.calls).toEqual([]);
  });

  if (method === 'GET') {
    test('answers HEAD like GET, without the body', async () => {
      const token = secret();
      stage.upstream.on(`GET ${path}`, json(200, exampleBody(id)));
      const head = await stage.raw(
        requestText({ method: 'HEAD', target: path, headers: [['Authorization', `Token ${token}`]] }),
      );
      expect(head).toMatchObject({ status: 200, body: '', headers: { 'content-type': 'application/json' } });
      expect(stage.upstream.calls).toHaveLength(1);
    });

    test(cachedIds.includes(id) ? 'is cached for its account' : 'is never cached', async () => {
      const token = secret();
      const isCached = cachedIds.includes(id);
      stage.upstream.on(`GET ${path}`, json(200, exampleBody(id)));
      const [first, second] = [await stage.call(request({ token })), await stage.call(request({ token }))];
      expect(second.text).toBe(first.text);
      expect(stage.upstream.calls).toHaveLength(isCached ? 1 : 2);
      const stored = { etag: expect.stringMatching(/^"[^"]+"$/), age: '0', 'cache-control': 'private, no-cache' };
      if (isCached) {
        expect(first.headers).toMatchObject({ ...stored, 'cache-status': 'portico; fwd=miss; stored' });
        expect(second.headers['cache-status']).toMatch(/^portico; hit; ttl=\d+$/);
        expect(second.headers['etag']).toBe(first.headers['etag']);
        expect(first.headers['vary']).toContain('Authorization');
      } else {
        expect(first.headers['cache-control']).toBe('no-store');
        expect('etag' in first.headers).toBe(row.polled === true);
      }
    });
  } else {
    test('is never cached', async () => {
      stage.upstream.on(`${method} ${path}`, json(status, example(stage.upstream.url)));
      const answer = await stage.call(request());
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers).not.toHaveProperty('etag');
    });
  }
});
