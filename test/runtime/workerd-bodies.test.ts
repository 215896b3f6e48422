import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBareWorker } from './bare-worker.ts';
import { killAll } from './node-gateway.ts';
import { allOperations, type OperationId } from '../support/account-api.ts';
import { exampleInput } from '../support/examples.ts';
import { goodAnswer } from '../support/marked.ts';
import { rawRequest } from '../support/raw-client.ts';
import { perCall, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const LIMIT = 65_536;

let upstream: ScriptedUpstream;
let port: number;

/** Without what `wrangler dev` puts before a worker: that keeps the chunks of a GET to itself. */
beforeAll(async () => {
  upstream = await startUpstream();
  upstream.on(
    () => true,
    perCall((call) => goodAnswer(call, 1)),
  );
  const { url } = await startBareWorker({ UPSTREAM_BASE_URL: upstream.url, RATE_LIMIT_PER_MINUTE: '0' });
  port = Number(new URL(url).port);
});

afterAll(async () => {
  await killAll();
  await upstream.close();
});

/** What takes no body, reads asked with HEAD too. */
const bodiless = allOperations
  .filter(({ body }) => !body)
  .flatMap(({ id, method }) => (method === 'GET' ? [method, 'HEAD'] : [method]).map((as) => [as, id] as const));

const isRead = (method: string) => method === 'GET' || method === 'HEAD';

const SENT = [
  ['with a length', (size: number) => `Content-Length: ${size}\r\n\r\n${'x'.repeat(size)}`],
  [
    'in chunks',
    (size: number) => `Transfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`,
  ],
] as const;

describe.each(SENT)('on workerd, a body that nobody takes, %s,', (_, framed) => {
  const sendTo = (method: string, id: OperationId) => (size: number) =>
    rawRequest(
      port,
      `${method} ${exampleInput(id).path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n${framed(size)}`,
    );

  test.each(bodiless.filter(([method]) => isRead(method)))('to %s %s is not looked at', async (method, id) => {
    const callsBefore = upstream.calls.length;
    const send = sendTo(method, id);
    for (const size of [LIMIT, LIMIT + 1]) expect((await send(size)).status).toBeLessThan(300);
    expect(upstream.calls.slice(callsBefore).map(({ body }) => body)).toEqual(['', '']);
  });

  test.each(bodiless.filter(([method]) => !isRead(method)))(
    'to %s %s is passed over up to the limit, and too large above it',
    async (method, id) => {
      const callsBefore = upstream.calls.length;
      const send = sendTo(method, id);
      const large = await send(LIMIT + 1);
      expect([large.status, JSON.parse(large.body)]).toMatchObject([413, { code: 'payload_too_large' }]);
      expect(upstream.calls).toHaveLength(callsBefore);
      expect((await send(LIMIT)).status).toBeLessThan(300);
      expect(upstream.calls.slice(callsBefore).map(({ body }) => body)).toEqual(['']);
    },
  );
});
