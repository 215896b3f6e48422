import { expect, test } from 'vitest';
import { gist, good, goodGist, openShop, UNKNOWN } from './helpers.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { barrier, hang, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { writeIds } from '../support/table.ts';

/** The clock of a machine that slept: one that stands still meanwhile, or the time of day. */
const STOPS = ['now', 'wall'] as const;

const cases = writeIds.flatMap((id) => STOPS.map((which) => [id, which] as const));

test.each(cases)(
  '%s is not sent by a machine that slept until its time was over, which only `%s` tells',
  async (id, which) => {
    const clock = clockOfDeadlines();
    let sleptMs = 0;
    const slept = { ...clock, [which]: () => clock.now() + sleptMs };
    const shop = await openShop({ UPSTREAM_MAX_CONNECTIONS: '1' }, { clock: slept });
    const gate = barrier();
    const slow = 'getSubscription';
    shop.upstream.once(callOf(slow), reply(hold(gate), json(200, bodyOf(slow, 1))));
    const busy = shop.ask(slow, { token: secret() });
    await gate.reached;
    const waiting = shop.store.begins.next();
    const late = shop.keyed(id);
    await waiting;
    sleptMs = 60_000;
    gate.release();
    await busy;
    expect(gist(await late)).toBe('504 upstream_timeout');
    sleptMs = 0;
    shop.script(id, good(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  },
);

test('a purchase whose outcome nobody knows after a stall is not sent again for 60 s', async () => {
  const clock = clockOfDeadlines();
  let stalledMs = 0;
  const shop = await openShop({}, { clock: { ...clock, now: () => clock.now() + stalledMs } });
  shop.upstream.once(callOf('purchasePlan'), hang());
  const first = shop.ask('purchasePlan');
  await shop.upstream.waitForCalls(1);
  stalledMs = 100_000; // longer than the request and its mark may last
  shop.advance(5);
  expect(gist(await first)).toBe('504 upstream_timeout unknown');
  shop.script('purchasePlan', good('purchasePlan', 1));
  expect(gist(await shop.ask('purchasePlan'))).toBe(UNKNOWN);
  shop.advance(59);
  expect(gist(await shop.ask('purchasePlan'))).toBe(UNKNOWN);
  shop.advance(20);
  expect(gist(await shop.ask('purchasePlan'))).toBe(goodGist('purchasePlan', 1));
});
