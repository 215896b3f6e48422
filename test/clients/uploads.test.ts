import { afterEach, beforeEach, expect, test } from 'vitest';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { openSocket } from '../support/raw-client.ts';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const PATH = '/api/v2/apikey/';
const UPLOADS = 100;

let upstream: ScriptedUpstream;
let gateway: NodeGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startNode({ UPSTREAM_BASE_URL: upstream.url, ADMIN_PORT: '0' });
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

const HEADS = ['Content-Length: 5000\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n1000\r\n'];
const LEAVING = ['end', 'destroy', 'reset'] as const;

/** Begins to send a body, and leaves in the middle of it. */
async function abort(index: number): Promise<void> {
  const socket = await openSocket(gateway.port);
  const head = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n`;
  await socket.write(
    `${head}Content-Type: application/json\r\n${HEADS[index % HEADS.length]}{"label":"${'x'.repeat(500)}`,
  );
  await call(gateway.url, { path: '/livez' }); // the gateway has had its turn, and begun the upload
  socket[LEAVING[index % LEAVING.length] ?? 'reset']();
  await socket.closed;
}

test('uploads that break off leave a line each in the log, and nothing else anywhere', async () => {
  await Promise.all(Array.from({ length: UPLOADS }, (_, index) => abort(index)));
  const ofUploads = () => gateway.records().filter(({ route }) => route === PATH);
  await gateway.until(() => (ofUploads().length >= UPLOADS ? true : undefined));
  expect((await call(gateway.url, { path: '/livez' })).status).toBe(200);
  gateway.signal('SIGTERM');
  expect(await gateway.exited).toBe(0);
  expect(ofUploads()).toHaveLength(UPLOADS);
  expect(ofUploads().filter(({ code, status }) => code !== 'client_left' || status !== 499)).toEqual([]);
  const others = gateway
    .records()
    .filter(({ route, msg }) => msg === 'request' && route !== PATH && route !== '/livez');
  expect(others).toEqual([]);
  expect(gateway.records().filter(({ level }) => level !== 'info')).toEqual([]);
  expect(gateway.stdout()).not.toMatch(/^\s+at /m);
  expect(gateway.stderr()).toBe('');
  expect(upstream.calls).toEqual([]);
});
