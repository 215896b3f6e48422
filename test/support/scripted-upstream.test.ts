import { afterEach, beforeEach, expect, test } from 'vitest';
import { call } from './http.ts';
import { openSocket, rawRequest } from './raw-client.ts';
import {
  barrier,
  bytes,
  close,
  hang,
  hold,
  httpResponse,
  json,
  perCall,
  reply,
  reset,
  split,
  startUpstream,
  type ScriptedUpstream,
} from './scripted-upstream.ts';

const PATH = '/api/v2/subscription/';
const GET = `GET ${PATH}`;

let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
});
afterEach(() => upstream.close());

const get = (path = PATH, token?: string) => call(upstream.url, { path, ...(token !== undefined && { token }) });
const port = () => Number(new URL(upstream.url).port);

test('answers the JSON text as it is, and shows the call', async () => {
  upstream.on(GET, json(200, '{"amount":25.0}', { ETag: '"1"' }));
  const answer = await get(`${PATH}?page=1`, 'abc');
  expect(answer).toMatchObject({ status: 200, text: '{"amount":25.0}' });
  expect(answer.headers).toMatchObject({ etag: '"1"', 'content-type': 'application/json' });
  expect(upstream.calls).toMatchObject([
    { method: 'GET', target: `${PATH}?page=1`, path: PATH, headers: { authorization: 'Token abc' }, body: '' },
  ]);
  expect(upstream.calls[0]?.rawHeaders).toContainEqual(['authorization', 'Token abc']);
});

test('204 has neither body nor content headers', async () => {
  upstream.on('DELETE /x/', json(204));
  const { status, headers, text } = await call(upstream.url, { method: 'DELETE', path: '/x/' });
  expect({ status, headers, text }).toEqual({ status: 204, headers: {}, text: '' });
});

test('replies queue up and the last one repeats', async () => {
  upstream.on(GET, json(200, 1), json(200, 2));
  const texts = [await get(), await get(), await get()].map(({ text }) => text);
  expect(texts).toEqual(['1', '2', '2']);
});

test('the newest script counts, and `once` lets older ones count again', async () => {
  upstream.on(GET, json(200, 'false')).once(GET, json(503, 1), json(503, 2));
  const texts = [await get(), await get(), await get()].map(({ text }) => text);
  expect(texts).toEqual(['1', '2', 'false']);
});

test('a match with a query wants that query; a predicate sees the call', async () => {
  upstream.on(GET, json(200, 'null')).on(`${GET}?page=2`, json(200, 2));
  upstream.on(({ headers }) => headers['authorization'] === 'Token b', json(200, 3));
  const texts = [await get(), await get(`${PATH}?page=2`), await get(PATH, 'b')].map(({ text }) => text);
  expect(texts).toEqual(['null', '2', '3']);
});

test('an answer can depend on the call', async () => {
  upstream.on(
    GET,
    perCall(({ headers }) => json(200, { for: headers['authorization'] })),
  );
  expect((await get(PATH, 'a')).json).toEqual({ for: 'Token a' });
});

test('a barrier holds all who arrive until it is released', async () => {
  const gate = barrier();
  upstream.on(GET, reply(hold(gate), json(200, {})));
  const answers = [get(), get(), get()];
  await gate.reached;
  await gate.count(3);
  expect(upstream.connections()).toBe(3);
  gate.release();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await get()).status).toBe(200);
});

test('split stops in mid body', async () => {
  const [gate, whole] = [barrier(), httpResponse(200, { a: 1 })];
  upstream.on(GET, split([whole.subarray(0, -3), whole.subarray(-3)], [gate]));
  const answer = get();
  await gate.reached;
  gate.release();
  expect((await answer).json).toEqual({ a: 1 });
  expect(() => split(['a', 'b', 'c'], [gate])).toThrow('one barrier');
});

test('reset, close and malformed bytes reach the client as they are', async () => {
  const cut = httpResponse(200, { a: 1 }).subarray(0, -3);
  upstream.on(GET, reset(), reply(bytes(cut), reset()), reply(bytes(cut), close()), bytes('HTTP/9 what\r\n\r\n'));
  await expect(get()).rejects.toMatchObject({ code: 'ECONNRESET' });
  await expect(get()).rejects.toThrow();
  await expect(get()).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
  await expect(get()).rejects.toMatchObject({ name: 'HTTPParserError' });
  upstream.assertNoUnexpected();
});

test('what nothing was scripted for is reset and told', async () => {
  upstream.once(GET, json(200, {}));
  await get();
  await expect(get()).rejects.toMatchObject({ code: 'ECONNRESET' });
  await expect(call(upstream.url, { path: '/y/', body: {} })).rejects.toThrow();
  expect(upstream.unexpected).toHaveLength(2);
  expect(() => upstream.assertNoUnexpected()).toThrow(`GET ${PATH}, POST /y/`);
});

test.each([
  ['two lengths', 'GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ['length and chunks', 'POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a space before the colon', 'GET / HTTP/1.1\r\nA : b\r\n\r\n'],
  ['a bare line feed', 'GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n'],
  ['a space in the target', 'GET /a b HTTP/1.1\r\n\r\n'],
])('a request with %s is unexpected', async (_, request) => {
  upstream.on(() => true, json(200, {}));
  await expect(rawRequest(port(), request)).rejects.toThrow('closed before');
  expect(upstream.unexpected).toMatchObject([{ method: 'MALFORMED' }]);
});

test('reads chunked, sized and pipelined requests that arrive in pieces', async () => {
  upstream.on('POST /a', json(200, 1)).on('POST /b', json(200, 2)).on('GET /c', json(200, 3));
  const socket = await openSocket(port());
  const requests =
    'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\n\r\n\r\n0\r\nTrailer: t\r\n\r\n' +
    'POST /b HTTP/1.1\r\nContent-Length: 4\r\n\r\nde\r\nGET /c HTTP/1.1\r\n\r\n';
  for (const piece of requests) await socket.write(piece);
  const answers = [await socket.readResponse(), await socket.readResponse(), await socket.readResponse()];
  expect(answers.map(({ body }) => body)).toEqual(['1', '2', '3']);
  expect(upstream.calls.map(({ body, socket: id }) => [body, id])).toEqual([
    ['abc\r\n', 1],
    ['de\r\n', 1],
    ['', 1],
  ]);
  socket.destroy();
});

test('pipelined calls are answered in order, although the first is held', async () => {
  const gate = barrier();
  upstream.on('GET /a', reply(hold(gate), json(200, 1))).on('GET /b', json(200, 2));
  const socket = await openSocket(port());
  await socket.write('GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n');
  await upstream.waitForCalls(2);
  gate.release();
  expect([(await socket.readResponse()).body, (await socket.readResponse()).body]).toEqual(['1', '2']);
  socket.destroy();
});

test('waits for calls, those of before included', async () => {
  upstream.on(GET, json(200, {})).on('GET /z/', json(200, {}));
  const third = upstream.waitForCalls(2, GET);
  await Promise.all([get(), get('/z/'), get()]);
  expect((await third).map(({ path }) => path)).toEqual([PATH, PATH]);
  expect(await upstream.waitForCalls(3)).toHaveLength(3);
});

test('tells when the client has left a call that hangs', async () => {
  upstream.on(GET, hang());
  const leave = new AbortController();
  const answer = call(upstream.url, { path: PATH, signal: leave.signal });
  const [seen] = await upstream.waitForCalls(1);
  leave.abort();
  await expect(answer).rejects.toThrow('aborted');
  await upstream.disconnected(seen!);
});

test('once closed it refuses connections', async () => {
  const held = upstream.on(GET, hang()) && get();
  await upstream.waitForCalls(1);
  await upstream.close();
  await expect(held).rejects.toThrow();
  await expect(get()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
