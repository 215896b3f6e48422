import { describe, expect, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import { legsOf, overviewTable } from '../overviews/helpers.ts';
import { PLAIN, WRITE } from './helpers.ts';
import { call } from '../support/http.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { barrier, hang, hold, json, reply, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

/** Overviews of which the required leg fails while the others are under way, which are then given up. */
describe.each(overviewTable)('the legs that %s gives up', (path, overview) => {
  const legs = legsOf(overview);
  const required = legs.find((leg) => leg.required);

  const giveUp = async (step: Step, times: number) => {
    const world = await openWorld();
    for (const leg of legs) world.upstream.on(`GET ${leg.path}`, hang());
    for (let given = 0; given < times; given++) {
      const gate = barrier();
      world.upstream.calls.length = 0;
      world.upstream.on(`GET ${required?.path}`, reply(hold(gate), step));
      const asked = call(world.gateway.url, { path, token: secret() });
      const early = asked.then(({ status }) => Promise.reject(new Error(`${status} before it was asked`)));
      const calls = await Promise.race([world.upstream.waitForCalls(legs.length), early]);
      const others = calls.filter(({ target }) => target !== required?.path);
      early.catch(() => undefined);
      gate.release();
      expect((await asked).status).toBeGreaterThanOrEqual(400);
      for (const other of others) await world.upstream.disconnected(other);
    }
    world.upstream.calls.length = 0;
    return world;
  };

  test('have not failed: the circuit stays closed', async () => {
    const world = await giveUp(json(500, ''), 9);
    world.upstream.on(callOf(PLAIN), json(200, bodyOf(PLAIN, 1)));
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
  });

  test('are no good signs either', async () => {
    const world = await giveUp(json(500, ''), 9);
    world.upstream.on(callOf(WRITE), json(500, ''));
    for (let failed = 9; failed < 20; failed++) await world.ask(WRITE, { token: secret() });
    expectProblem(await world.ask(PLAIN), { status: 503, code: 'upstream_unavailable' });
  });

  test('take nothing from the budget of retries', async () => {
    const world = await giveUp(json(502, ''), 1); // two of three
    world.upstream.on(callOf(PLAIN), json(503, ''), json(200, bodyOf(PLAIN, 1)));
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
  });
});
