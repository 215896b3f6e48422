import { expect, onTestFinished, test } from 'vitest';
import { testClock } from '../support/clock.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { expectProblem } from '../support/problem.ts';
import { secret } from '../support/secrets.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startBlackhole } from './blackhole.ts';

// In full, since whether the system lets nobody in any more is told by a time.

test('where nobody answers who knocks, it is a time-out of which nothing has happened', async () => {
  const upstream = await startUpstream();
  await upstream.close();
  const hole = await startBlackhole(Number(new URL(upstream.url).port));
  onTestFinished(() => hole.close());
  const clock = testClock();
  const begun = Promise.withResolvers<void>();
  const after: typeof clock.after = (ms, run) => {
    if (ms === 5_000) begun.resolve(); // the time of an attempt
    return clock.after(ms, run);
  };
  const gateway = await startGateway(upstream.url, { clock: { ...clock, after } });
  onTestFinished(() => gateway.close());
  const asked = call(gateway.url, { path: '/api/v2/apikey/', token: secret(), body: {} });
  await begun.promise;
  clock.advance(5_000);
  expect(expectProblem(await asked, { status: 504, code: 'upstream_timeout' }).outcome).toBeUndefined();
});
