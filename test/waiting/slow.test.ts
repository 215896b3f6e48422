import { expect, test, vi } from 'vitest';
import { hold, barrier, json, reply } from '../support/scripted-upstream.ts';
import { watchedClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { openWorld } from '../support/world.ts';

const FRESH = 5;
const SECONDS = FRESH + 1;
/** Of a reading. */
const TIMEOUT = 10;

test('a reading that lasts longer than the wait is its last', async () => {
  const clock = watchedClock();
  const env = {
    CACHE_POLICY: JSON.stringify({ getSubscription: { fresh: FRESH, stale: 0, on_error: 600 } }),
    REQUEST_TIMEOUT_MS: String(TIMEOUT * 1000),
    UPSTREAM_TIMEOUT_MS: String(TIMEOUT * 1000),
  };
  const world = await openWorld(env, { clock });
  world.answerAll();
  const { path } = exampleInput('getSubscription');
  const { etag = '' } = (await world.call({ path, token: world.token })).headers;
  const gate = barrier();
  world.upstream.on(() => true, reply(hold(gate), json(200, '{}')));
  const headers = { 'If-None-Match': etag, Prefer: `wait=${SECONDS}` };
  const answer = world.call({ path, token: world.token, headers });
  await clock.waits((ms) => ms === FRESH * 1000);
  world.advance(FRESH);
  await gate.reached;
  world.advance(TIMEOUT);
  const over = vi.fn();
  void answer.then(over);
  await vi.waitFor(() => expect(over).toHaveBeenCalled());
  const { status, headers: given } = await answer;
  expect([status, given['preference-applied']]).toEqual([304, `wait=${SECONDS}`]);
  expect(world.upstream.calls).toHaveLength(2);
  gate.release();
});
