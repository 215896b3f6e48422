import { describe, expect, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import { exampleBody } from '../support/examples.ts';
import { bytes, close, httpResponse, json, reply, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const PATH = '/api/v2/subscription/';
const HTML_TYPE = { 'Content-Type': 'text/html' };
const HTML = '<!doctype html><html><head><title>Error</title></head><body><h1>At internal.example</h1></body></html>';

const stage = useWorld();

/** An answer whose bytes are not UTF-8. */
const latin1 = (status: number, text: string): Step => {
  const body = Buffer.from(text, 'latin1');
  const head = httpResponse(status, '', { ...HTML_TYPE, 'Content-Length': String(body.length) });
  return bytes(Buffer.concat([head, body]));
};

describe('an error that is not JSON keeps its status', () => {
  const NAMES = [
    [400, 'bad_request'],
    [402, 'payment_required'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [405, 'method_not_allowed'],
    [406, 'not_acceptable'],
    [409, 'conflict'],
    [410, 'gone'],
    [413, 'payload_too_large'],
    [415, 'unsupported_media_type'],
    [422, 'unprocessable_content'],
  ] as const;

  test.each(NAMES)('%i, HTML', async (status, code) => {
    stage.upstream.on(`GET ${PATH}`, json(status, HTML, HTML_TYPE));
    const answer = await stage.call({ path: PATH, token: secret() });
    const problem = expectProblem(answer, { status, code, instance: PATH });
    expect(problem.errors).toEqual([]);
    expect(JSON.stringify(problem)).not.toMatch(/<|internal\.example/);
  });

  const BODIES: readonly (readonly [string, Step])[] = [
    ['nothing', json(404, '')],
    ['nothing, and no length either', reply(bytes('HTTP/1.1 404 Not Found\r\n\r\n'), close())],
    ['50 KB of garbage', json(404, `}{${'"\\x00'.repeat(12_500)}`)],
    ['50 KB of text', json(404, { detail: 'x'.repeat(50_000) })],
    ['a hundred thousand brackets', json(404, `${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
    ['a hundred thousand objects', json(404, `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)],
    ['a cut-off object', json(404, '{"detail":"Not f')],
    [
      'ten thousand errors',
      json(
        404,
        Array.from({ length: 10_000 }, () => ({ message: 'x', code: '1' })),
      ),
    ],
    ['bytes that are no UTF-8', latin1(404, '<p>Página não encontrada</p>')],
    ['bytes that are packed badly', json(404, 'no gzip', { 'Content-Encoding': 'gzip' })],
    ['bytes that are packed in an unknown way', json(404, 'x', { 'Content-Encoding': 'zstd2' })],
  ];

  test.each(BODIES)('404, %s', async (_, step) => {
    stage.upstream.on(`GET ${PATH}`, step);
    const answer = await stage.call({ path: PATH, token: secret() });
    expect(answer.status).toBe(404);
    expect(answer.text.length).toBeLessThan(16_384);
    expect(answer.headers['content-type']).toBe('application/problem+json');
  });
});

/** What a body may be that nobody can read. */
const UNREADABLE: Readonly<Record<string, (status: number) => Step>> = {
  'bytes that are no UTF-8': (status) => latin1(status, '<p>Não</p>'),
  'bytes that are packed badly': (status) => json(status, 'no gzip', { 'Content-Encoding': 'gzip' }),
  'six million bytes': (status) => json(status, 'x'.repeat(6_000_000)),
  'less than there should be': (status) => reply(bytes(httpResponse(status, '{', { 'Content-Length': '99' })), close()),
};

describe.each(Object.entries(UNREADABLE))('an error of %s', (_, step) => {
  const always = useWorld({ CACHE_POLICY: '{"getSubscription":{"fresh":0,"stale":0,"on_error":3600}}' });

  test.each([401, 403])('is still a %i, which no older copy stands in for', async (status) => {
    const token = secret();
    always.upstream.once(`GET ${PATH}`, json(200, exampleBody('getSubscription')));
    expect((await always.call({ path: PATH, token })).status).toBe(200);
    always.upstream.on(`GET ${PATH}`, step(status));
    expect((await always.call({ path: PATH, token })).status).toBe(status);
    always.upstream.on(`GET ${PATH}`, json(500, ''));
    expect((await always.call({ path: PATH, token })).status).toBe(502);
  });

  test('is still a 503', async () => {
    always.upstream.on(`GET ${PATH}`, step(503));
    const answer = await always.call({ path: PATH, token: secret() });
    expectProblem(answer, { status: 503, code: 'upstream_unavailable' });
  });
});
