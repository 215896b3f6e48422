import { describe, expect, test } from 'vitest';
import { PATH, responsesOf, openBatch, SUBSCRIPTION } from './helpers.ts';
import { call } from '../support/http.ts';
import { openSocket, rawRequest } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';

const item = (id: unknown, path: unknown = SUBSCRIPTION) => ({ id, path });
const many = (count: number) => Array.from({ length: count }, (_, index) => item(`r${index}`));

test('a batch with an idempotency key is refused: it writes nothing', async () => {
  const world = await openBatch();
  const { status, json: problem } = await world.batch([SUBSCRIPTION], { headers: { 'Idempotency-Key': 'k1' } });
  expect([status, problem]).toMatchObject([400, { code: 'validation_failed', errors: [{ field: 'Idempotency-Key' }] }]);
  expect(world.upstream.calls).toEqual([]);
});

describe('a batch that is refused as a whole', () => {
  test.each<readonly [name: string, body: unknown, fields: readonly (string | null)[]]>([
    ['an array', [], [null]],
    ['null', null, [null]],
    ['a string', '"requests"', [null]],
    ['no requests', {}, ['requests']],
    ['requests that are an object', { requests: { a: 1 } }, ['requests']],
    ['no items', { requests: [] }, ['requests']],
    ['1,000 items', { requests: many(1_000) }, [null]],
    ['21 items', { requests: many(21) }, ['requests']],
    ['another field', { requests: many(1), strict: true }, ['strict']],
    ['an id twice', { requests: [item('a'), item('b'), item('a')] }, ['requests']],
    ['an item that is null', { requests: [null] }, ['requests.0']],
    ['an item with another field', { requests: [{ ...item('a'), method: 'POST' }] }, ['requests.0.method']],
    ['no id', { requests: [{ path: SUBSCRIPTION }] }, ['requests.0.id']],
    ['an empty id', { requests: [item('')] }, ['requests.0.id']],
    ['an id of 65 characters', { requests: [item('x'.repeat(65))] }, ['requests.0.id']],
    ['ids and paths of other types', { requests: [item(1), item('b', 2)] }, ['requests.0.id', 'requests.1.path']],
    ['no path', { requests: [item('a'), { id: 'b' }] }, ['requests.1.path']],
    ['an absolute URL', { requests: [item('a', 'http://evil.example/api/v2/subscription/')] }, ['requests.0.path']],
    ['a path without a slash', { requests: [item('a', 'api/v2/subscription/')] }, ['requests.0.path']],
    ['an empty path', { requests: [item('a', '')] }, ['requests.0.path']],
    ['a fragment', { requests: [item('a', `${SUBSCRIPTION}#x`)] }, ['requests.0.path']],
    ['a line break', { requests: [item('a', `${SUBSCRIPTION}\r\nX-Evil: 1`)] }, ['requests.0.path']],
    ['a space', { requests: [item('a', `${SUBSCRIPTION}?x= HTTP/1.1`)] }, ['requests.0.path']],
    ['a NUL', { requests: [item('a', `${SUBSCRIPTION}?\0`)] }, ['requests.0.path']],
    ['a path that is not ASCII', { requests: [item('a', `${SUBSCRIPTION}?é`)] }, ['requests.0.path']],
    ['a path of 4097 characters', { requests: [item('a', `/${'x'.repeat(4096)}`)] }, ['requests.0.path']],
  ])('because of %s', async (_, body, fields) => {
    const world = await openBatch();
    const { status, headers, json: problem } = await world.post(body === null ? 'null' : body);
    expect({ status, type: headers['content-type'] }).toEqual({ status: 400, type: 'application/problem+json' });
    expect(problem).toMatchObject({ code: 'validation_failed', instance: PATH });
    expect((problem as { errors: { field: string | null }[] }).errors.map(({ field }) => field)).toEqual(fields);
    expect(world.upstream.calls).toHaveLength(0);
  });

  test.each([
    ['malformed JSON', '{"requests":[', 400, 'malformed_json'],
    ['no body', '', 400, 'malformed_json'],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 400, 'malformed_json'],
    ['65537 bytes', JSON.stringify({ requests: [item('a')] }).padEnd(65_537), 413, 'payload_too_large'],
  ])('because of %s', async (_, body, status, code) => {
    const world = await openBatch();
    const answer = await world.post(body);
    expect(answer).toMatchObject({ status, json: { code, status, instance: PATH } });
    expect(world.upstream.calls).toHaveLength(0);
  });

  test('not because of 65536 bytes, nor of 20 items', async () => {
    const world = await openBatch();
    world.on(SUBSCRIPTION, json(200, '{}'));
    const answer = await world.post(JSON.stringify({ requests: many(20) }).padEnd(65_536));
    expect(responsesOf(answer)).toHaveLength(20);
    expect(world.upstream.calls).toHaveLength(1);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'text/json', undefined])(
    'because of the type %s',
    async (type) => {
      const { gateway, token, upstream } = await openBatch();
      const body = JSON.stringify({ requests: many(1) });
      const head = [`POST ${PATH} HTTP/1.1`, 'Host: gateway', `Authorization: Token ${token}`];
      const lines = [...head, ...(type ? [`Content-Type: ${type}`] : []), `Content-Length: ${body.length}`, '', body];
      const { status, body: text } = await rawRequest(gateway.port, lines.join('\r\n'));
      expect(status).toBe(415);
      expect(JSON.parse(text)).toMatchObject({ code: 'unsupported_media_type', instance: PATH });
      expect(upstream.calls).toHaveLength(0);
    },
  );

  test('because of a body without a length that is too large', async () => {
    const { gateway, token } = await openBatch();
    const socket = await openSocket(gateway.port);
    const head = `POST ${PATH} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Token ${token}\r\n`;
    await socket.write(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`);
    await socket.write(`10001\r\n${'x'.repeat(65_537)}\r\n`);
    expect((await socket.readResponse()).status).toBe(413);
    socket.destroy();
  });

  test.each([
    ['without a credential', {}],
    ['with a malformed one', { Authorization: 'Basic abc' }],
  ])('%s', async (_, headers) => {
    const { gateway, upstream } = await openBatch();
    const body = { requests: many(1) };
    const answer = await call(gateway.url, { path: PATH, body, headers });
    expect(answer).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Token' },
      json: { code: 'unauthenticated' },
    });
    expect(upstream.calls).toHaveLength(0);
  });

  test('without a credential before its body comes', async () => {
    const { gateway } = await openBatch();
    const socket = await openSocket(gateway.port);
    await socket.write(`POST ${PATH} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n`);
    await socket.write('Content-Length: 100\r\n\r\n');
    expect((await socket.readResponse()).status).toBe(401);
    socket.destroy();
  });

  test.each(['GET', 'PUT', 'DELETE', 'PATCH'])('with %s', async (method) => {
    const { get } = await openBatch();
    expect(await get(PATH, { method })).toMatchObject({ status: 405, headers: { allow: 'POST' } });
  });
});
