import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSocket, rawRequest } from './raw-client.ts';
import { bytes, close, json, reply, reset, startUpstream, type ScriptedUpstream } from './scripted-upstream.ts';

let server: ScriptedUpstream;
let port: number;

beforeAll(async () => {
  server = await startUpstream();
  port = Number(new URL(server.url).port);
});
afterAll(() => server.close());

const GET_X = 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n';

/** What the client makes of these bytes. */
const reading = (answer: string, request = GET_X) => {
  server.once(() => true, reply(bytes(answer), close()));
  return rawRequest(port, request);
};

describe('a response', () => {
  test('of a stated length', async () => {
    const response = await reading('HTTP/1.1 400 Bad\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nhi');
    expect(response).toMatchObject({ status: 400, body: 'hi', headers: { 'x-a': '1, 2' } });
    expect(response.rawHeaders.slice(0, 2)).toEqual([
      ['X-A', '1'],
      ['x-a', '2'],
    ]);
  });

  test('in chunks', async () => {
    const response = await reading('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n');
    expect(response.body).toBe('hi');
  });

  test('that ends with the connection', async () => {
    expect((await reading('HTTP/1.1 200 OK\r\n\r\nhi')).body).toBe('hi');
  });

  test('after an interim one', async () => {
    expect((await reading('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n')).status).toBe(204);
  });

  test('to HEAD, whose length is that of no body', async () => {
    const response = await reading('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', GET_X.replace('GET', 'HEAD'));
    expect(response).toMatchObject({ status: 200, body: '' });
  });

  test('that is cut off', async () => {
    await expect(reading('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi')).rejects.toThrow('closed before');
  });

  test('that is framed twice', async () => {
    const twice = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nhi';
    await expect(reading(twice)).rejects.toThrow('content-length and transfer-encoding');
  });
});

describe('a socket', () => {
  test('serves several requests, sent in halves', async () => {
    server.once('GET /x', json(200, 1), json(200, 2));
    const socket = await openSocket(port);
    await socket.write(GET_X.slice(0, 9));
    await socket.write(GET_X.slice(9));
    expect((await socket.readResponse()).body).toBe('1');
    await socket.write(GET_X);
    expect((await socket.readResponse()).body).toBe('2');
    expect(socket.unread()).toBe('');
    socket.destroy();
    await socket.closed;
  });

  test.each([close(), reset()])('tells that the other side has closed', async (leave) => {
    server.once('GET /x', leave);
    const socket = await openSocket(port);
    await socket.write(GET_X);
    await socket.closed;
    await expect(socket.readResponse()).rejects.toThrow('closed before');
    socket.destroy();
  });

  test.each(['destroy', 'reset', 'end'] as const)('lets the other side see that it has left by %s', async (leave) => {
    server.once('GET /x', json(200, {}));
    const socket = await openSocket(port);
    await socket.write(GET_X);
    await socket.readResponse();
    let hasLeft = false;
    const gone = server.disconnected(server.calls.at(-1)!).then(() => (hasLeft = true));
    await new Promise(setImmediate);
    expect(hasLeft).toBe(false);
    socket[leave]();
    await gone;
    expect(hasLeft).toBe(true);
    socket.destroy();
  });
});
