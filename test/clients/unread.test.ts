import { expect, onTestFinished, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const REFRESH = '/api/v2/proxy/list/refresh/';

async function openFull() {
  const world = await openWorld();
  world.answerAll();
  const gateway = await startGateway(world.upstream.url, { isUnreadFull: () => true });
  onTestFinished(() => gateway.close());
  return gateway;
}

test('while clients have too much to read a read is a 503, and a write is answered: it has happened', async () => {
  const { url, lines } = await openFull();
  const token = secret();
  const answer = await call(url, { path: SUBSCRIPTION, token });
  expect(expectProblem(answer, { status: 503, code: 'overloaded' })).toMatchObject({ retry_after: 1, retryable: true });
  const line = lines.find(({ request_id }) => request_id === answer.headers['x-request-id']);
  expect(line).toMatchObject({ status: 503, code: 'overloaded', account: expect.any(String) });
  expect((await call(url, { method: 'POST', path: REFRESH, token })).status).toBe(204);
});

test.each(['/livez', '/readyz'])('a probe is answered however much is unread: %s', async (path) => {
  const { url } = await openFull();
  expect((await call(url, { path })).status).toBe(200);
});
