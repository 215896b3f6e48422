import { expect, onTestFinished, test } from 'vitest';
import type { Recorder } from '../../src/core/recorder.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { barrier, hold, json, reply, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { bodyOf, callOf, pathOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { watchedStore } from '../support/watched-store.ts';

const READ = 'getSubscription';

// Else each request that joins one would keep it, and with it all that were joined before.
test('a request that joins another one’s call keeps its ids, and not the request', async () => {
  const joined: unknown[] = [];
  const recorder: Recorder = {
    unknown: () => undefined,
    watchCircuit: () => undefined,
    answered: ({ phases = [] }) => void joined.push(...phases.flatMap((phase) => phase.joined ?? [])),
  };
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const store = watchedStore(new MemoryStore({ maxBytes: 1_000_000 }));
  const gateway = await startGateway(upstream.url, { recorder, store });
  onTestFinished(() => gateway.close());
  const gate = barrier();
  upstream.on(callOf(READ), reply(hold(gate), json(200, bodyOf(READ, 1))));
  const [token, waiting] = [secret(), store.lookups.next(2)];
  const asked = ['the-first', 'the-other'].map((id) =>
    call(gateway.url, { path: pathOf(READ), token, headers: { 'X-Request-Id': id } }),
  );
  await waiting;
  gate.release();
  await Promise.all(asked);
  expect(joined).toEqual([{ requestId: expect.stringMatching(/^the-(first|other)$/), span: undefined }]);
});
