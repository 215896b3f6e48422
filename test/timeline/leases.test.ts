import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { TracedRequest, Tracing } from '../../src/core/tracing.ts';
import { barrier, hold, json, reply, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { sharedStore } from '../store/shared-world.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { exampleRequest } from '../support/examples.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { objectEngine } from '../support/object-storage.ts';
import { secret } from '../support/secrets.ts';

const READ = 'getSubscription';

let upstream: ScriptedUpstream;

beforeEach(async () => {
  upstream = await startUpstream();
  onTestFinished(async () => {
    await upstream.close();
    upstream.assertNoUnexpected();
  });
});

const OTHER = 'the-other';

/** Two instances over one store. `lease`: that of the request of the second one. */
async function twoInstances() {
  const engine = objectEngine();
  const begun: TracedRequest[] = [];
  const tracing: Tracing = {
    begin(request) {
      begun.push(request);
      return undefined;
    },
  };
  const env = { SECRETS: secret('of-both-instances-0123456789') };
  const instance = async () => {
    const clock = clockOfDeadlines();
    const started = await startGateway(upstream.url, { env, clock, store: sharedStore({ engine, clock }), tracing });
    onTestFinished(() => started.close());
    return started.url;
  };
  const [first, second] = [await instance(), await instance()];
  const token = secret();
  const headers = { 'X-Request-Id': OTHER };
  return {
    askFirst: () => call(first, { ...exampleRequest(READ), token }),
    askSecond: () => call(second, { ...exampleRequest(READ), token, headers }),
    lease: () => begun.find(({ requestId }) => requestId === OTHER)?.phases?.find(({ phase }) => phase === 'lease'),
  };
}

test.each([
  ['gave', json(200, bodyOf(READ, 1)), 1],
  ['gave_nothing', json(500, ''), 2],
] as const)('waiting for another instance that fetches the same: it %s', async (fact, answer, calls) => {
  const { askFirst, askSecond, lease } = await twoInstances();
  const held = barrier();
  upstream.on(callOf(READ), json(200, bodyOf(READ, 2)));
  upstream.once(callOf(READ), reply(hold(held), answer));
  const first = askFirst();
  await held.reached;
  const second = askSecond();
  await expect.poll(lease).toMatchObject({ end: undefined });
  held.release();
  await first;
  expect((await second).status).toBe(200);
  expect([lease()?.fact, upstream.calls.length]).toEqual([fact, calls]);
});
