import { describe, expect, test } from 'vitest';
import { testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { memoryStore } from '../../support/stores.ts';
import { answer, hang, type Reply, reset } from '../../support/upstream.ts';
import { FIRST, IN_PROGRESS, summaryOf, UNKNOWN } from './helpers.ts';

const BUY = 'purchasePlan';
const PLAN = '{"term":"monthly","x_other":{"recaptcha":"compared"},"recaptcha":"one"}';
const ANOTHER_TOKEN = '{ "recaptcha": "two", "term": "monthl\\u0079", "x_other": {"recaptcha":"compared"} }';
const OTHER = '{"term":"monthly","x_other":{"recaptcha":"other"},"recaptcha":"one"}';

everywhere(
  says('the second gets 409 idempotency_in_progress while the first is under way'),
  async ({ ask, upstream, me }) => {
    const held = upstream.hold(BUY);
    const first = ask(BUY, { body: PLAN });
    await held.call;
    for (let time = 0; time < 4; time++) expect(summaryOf(await ask(BUY, { body: PLAN }))).toBe(IN_PROGRESS);
    expect(summaryOf(await ask(BUY, { body: PLAN, key: 'key' }))).toBe(IN_PROGRESS);
    expect(summaryOf(await ask(BUY, { body: OTHER }))).toMatch(FIRST);
    expect(summaryOf(await ask(BUY, { body: PLAN, token: secret() }))).toMatch(FIRST);
    held.release();
    expect(summaryOf(await first)).toMatch(FIRST);
    expect(summaryOf(await ask(BUY, { body: PLAN }))).toMatch(FIRST);
    expect(upstream.callsOf(me)).toHaveLength(3);
  },
);

everywhere(says('recaptcha is not compared'), async ({ ask, upstream, me }) => {
  const held = upstream.hold(BUY);
  const first = ask(BUY, { body: PLAN });
  await held.call;
  expect(summaryOf(await ask(BUY, { body: ANOTHER_TOKEN }))).toBe(IN_PROGRESS);
  expect(summaryOf(await ask(BUY, { body: OTHER }))).toMatch(FIRST);
  held.release();
  await first;
  const seen = summaryOf(await ask(BUY, { body: PLAN, key: 'key' }));
  expect(summaryOf(await ask(BUY, { body: ANOTHER_TOKEN, key: 'key' }))).toBe(`${seen} replayed`);
  expect(upstream.callsOf(me)).toHaveLength(3);
});

everywhere(
  says('and 409 outcome_unknown for 60 s after an unknown outcome'),
  async ({ ask, upstream, pass, me }) => {
    upstream.next(BUY, reset());
    expect(summaryOf(await ask(BUY))).toBe('502 upstream_unreachable unknown');
    for (const seconds of [0, 58]) {
      await pass(seconds);
      for (const own of [{}, { key: 'key' }]) expect(summaryOf(await ask(BUY, own))).toBe(UNKNOWN);
    }
    expect(upstream.callsOf(me)).toHaveLength(1);
    await pass(15); // the request's time is part of it
    expect(summaryOf(await ask(BUY))).toMatch(FIRST);
  },
  { time: true },
);

everywhere(says('Two equal purchases of an account, not both with a key:'), async ({ ask, upstream, me }) => {
  const [one, other] = [upstream.hold(BUY), upstream.hold(BUY)];
  const first = ask(BUY, { key: 'one' });
  await one.call;
  const second = ask(BUY, { key: 'other' });
  await other.call;
  for (const held of [other, one]) held.release();
  for (const asked of [first, second]) expect(summaryOf(await asked)).toMatch(FIRST);
  expect(upstream.callsOf(me)).toHaveLength(2);
});

const { ask, upstream, pass } = openGateway();

describe.each([
  [{}, {}],
  [{ key: 'key' }, {}],
  [{}, { key: 'key' }],
])(`${says('not both with a key')}: %j and %j`, (one, other) => {
  test.each<readonly [Reply | undefined, first: RegExp, isUnknown: boolean]>([
    [undefined, FIRST, false],
    [answer(400), /^400 bad_request$/, false],
    [answer(500), /^502 upstream_bad_response unknown$/, true],
    [reset(), /^502 upstream_unreachable unknown$/, true],
  ])('where the upstream says %j', async (reply, first, isUnknown) => {
    const token = secret();
    const held = upstream.hold(BUY);
    const asked = ask(BUY, { token, ...one });
    await held.call;
    expect(summaryOf(await ask(BUY, { token, ...other }))).toBe(IN_PROGRESS);
    held.release(reply);
    expect(summaryOf(await asked)).toMatch(first);
    for (const seconds of isUnknown ? [0, 59.9] : []) {
      await pass(seconds);
      expect(summaryOf(await ask(BUY, { token, ...other }))).toBe(UNKNOWN);
    }
    await pass(isUnknown ? 10.1 : 0);
    expect(summaryOf(await ask(BUY, { token, ...other }))).toMatch(FIRST);
    expect(upstream.callsOf(token)).toHaveLength(2);
  });
});

test(`${says('Two equal purchases of an account')}: other writes go beside an equal one`, async () => {
  const token = secret();
  for (const id of ['createApiKey', 'startIdVerification', 'refreshSubuser'] as const) {
    const held = upstream.hold(id);
    const first = ask(id, { token });
    await held.call;
    expect((await ask(id, { token })).status).toBeLessThan(300);
    held.release();
    expect((await first).status).toBeLessThan(300);
  }
});

test(`${says('for 60 s after an unknown outcome')}: also where the gateway was stalled meanwhile`, async () => {
  const clock = testClock();
  let stalledMs = 0;
  const stalled = openGateway({}, { clock: { ...clock, now: () => clock.now() + stalledMs } });
  stalled.upstream.next(BUY, hang());
  const first = stalled.ask(BUY);
  await stalled.upstream.arrived(BUY);
  stalledMs = 100_000; // longer than the request and its mark may last
  await clock.pass(5);
  expect(summaryOf(await first)).toBe('504 upstream_timeout unknown');
  for (const seconds of [0, 59]) {
    await clock.pass(seconds);
    expect(summaryOf(await stalled.ask(BUY))).toBe(UNKNOWN);
  }
  await clock.pass(20);
  expect(summaryOf(await stalled.ask(BUY))).toMatch(FIRST);
});

/** The store is gone once it was sent: the client is told what the upstream said, not what became of our record of it. */
test.each<readonly [string, Reply, RegExp]>([
  ['the answer', answer(200, {}), FIRST],
  ['that nobody knows', reset(), /^502 upstream_unreachable unknown$/],
  ['the refusal', answer(400), /^400 bad_request$/],
])(`${says('it is never sent again')}: told %s, though it could not be recorded`, async (_, reply, seen) => {
  const store = Object.assign(memoryStore(testClock()), { endWrite: async () => undefined });
  const broken = openGateway({}, { store });
  broken.upstream.next(BUY, reply);
  expect(summaryOf(await broken.ask(BUY, { key: 'key' }))).toMatch(seen);
  expect(summaryOf(await broken.ask(BUY, { key: 'key' }))).toBe(IN_PROGRESS);
  expect(broken.upstream.calls).toHaveLength(1);
});
