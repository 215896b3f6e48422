import { describe, expect, test } from 'vitest';
import { testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { type Gateway, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { memoryStore } from '../../support/stores.ts';
import { answer, reset } from '../../support/upstream.ts';
import { DAY, FIRST, HOLD, IN_PROGRESS, openCircuit, PROOFS, REUSED, summaryOf, UNKNOWN, UNKNOWNS } from './helpers.ts';

const BUY = 'purchasePlan';
/** One that buys, one with a body, one without. */
const WRITES = [BUY, 'createApiKey', 'refreshSubuser'] as const;
const OTHER = { path: '/api/v2/subscription/checkout/purchase/', body: '{"term":"another"}' };
const OUTCOME = '/bff/v1/outcome';

everywhere(
  says('(sent, then no answer, a 5xx or an unreadable one): 502, 503 or 504 with "outcome":"unknown"'),
  async ({ ask, call, upstream, me }) => {
    const shown = ['500', '503', 'a connection that breaks', 'HTML', 'JSON that is none'];
    const asked = UNKNOWNS.filter(([name]) => shown.includes(name));
    for (const [name, reply, seen] of asked) {
      const [key, body] = [secret(), `{"term":"${name}"}`]; // no two of them are equal
      upstream.next(BUY, reply);
      expect(summaryOf(await ask(BUY, { key, body }))).toBe(`${seen} unknown`);
      for (let time = 0; time < 2; time++) expect(summaryOf(await ask(BUY, { key, body }))).toBe(UNKNOWN);
      expect((await call(OUTCOME, { key })).json).toEqual({ state: 'unknown' });
      expect(summaryOf(await ask(BUY, { key, ...OTHER }))).toBe(REUSED);
    }
    expect(upstream.callsOf(me)).toHaveLength(asked.length);
  },
);

everywhere(
  says('and the key then gives 409 outcome_unknown: it is never sent again'),
  async ({ ask, upstream, pass, me }) => {
    upstream.next(BUY, reset());
    expect(summaryOf(await ask(BUY, { key: 'key' }))).toBe('502 upstream_unreachable unknown');
    for (const seconds of [61, DAY / 2, DAY / 2 - 121]) {
      await pass(seconds);
      expect(summaryOf(await ask(BUY, { key: 'key' }))).toBe(UNKNOWN);
    }
    expect(upstream.callsOf(me)).toHaveLength(1);
    await pass(61);
    expect(summaryOf(await ask(BUY, { key: 'key', ...OTHER }))).toMatch(FIRST);
  },
  { time: true },
);

everywhere(says('(a 4xx, no connection) frees the key'), async ({ ask, upstream, me }) => {
  upstream.next(BUY, answer(400, [{ message: 'Declined.', code: 'card_declined' }]), answer(422));
  expect(summaryOf(await ask(BUY, { key: 'key' }))).toBe('400 card_declined');
  expect(summaryOf(await ask(BUY, { key: 'key' }))).toBe('422 unprocessable_content');
  const second = summaryOf(await ask(BUY, { key: 'key', ...OTHER }));
  expect(second).toMatch(FIRST);
  expect(summaryOf(await ask(BUY, { key: 'key', ...OTHER }))).toBe(`${second} replayed`);
  expect(upstream.callsOf(me)).toHaveLength(3);
});

const { ask, call, upstream, pass } = openGateway();

test.each(WRITES.flatMap((id) => UNKNOWNS.map(([name, reply, seen]) => ({ id, name, reply, seen }))))(
  `${says('No outcome known')}: $id, $name`,
  async ({ id, reply, seen }) => {
    const asking = { token: secret(), key: 'key' };
    upstream.next(id, reply);
    const asked = ask(id, asking);
    await pass(5); // where nothing else ends it
    expect(summaryOf(await asked)).toBe(`${seen} unknown`);
    expect(summaryOf(await ask(id, asking))).toBe(UNKNOWN);
    expect(summaryOf(await ask(BUY, { ...asking, ...OTHER }))).toBe(REUSED);
    await pass(DAY - 6);
    expect(summaryOf(await ask(id, asking))).toBe(UNKNOWN);
    expect((await call(OUTCOME, asking)).json).toEqual({ state: 'unknown' });
    expect(upstream.callsOf(asking.token)).toHaveLength(1);
  },
);

const accept = () => {
  throw new TypeError('a bug');
};

test(`${says('each problem of an unknown outcome says so')}: a fault of ours after the answer was read`, async () => {
  const clock = testClock();
  const broken = openGateway({}, { clock, store: Object.assign(memoryStore(clock), { accept }) });
  expect(summaryOf(await broken.ask(BUY, { key: 'key' }))).toBe('500 internal_error unknown');
  expect(summaryOf(await broken.ask(BUY, { key: 'key' }))).toBe(UNKNOWN);
  expect(broken.lines.filter(({ msg }) => msg === 'internal error')).toMatchObject([
    { fault: expect.stringContaining('TypeError') },
  ]);
});

test.each(WRITES.flatMap((id) => PROOFS.map(([name, reply, seen]) => ({ id, name, reply, seen }))))(
  `${says('What proves that nothing happened (a 4xx, no connection) frees the key')}: $id, $name`,
  async ({ id, reply, seen }) => {
    const asking = { token: secret(), key: 'key' };
    upstream.next(id, reply);
    expect(summaryOf(await ask(id, asking))).toBe(seen);
    expect((await call(OUTCOME, asking)).code).toBe('outcome_not_found');
    await pass(HOLD);
    const first = summaryOf(await ask(id, asking));
    expect(first).toMatch(FIRST);
    expect(summaryOf(await ask(id, asking))).toBe(`${first} replayed`);
  },
);

const heldBack = async (shop: Gateway) => {
  shop.upstream.next('getApiKey', answer(429, '', { 'retry-after': String(HOLD) }));
  await shop.ask('getApiKey');
};

/** What the gateway keeps back was never sent, so that the key is free. */
describe.each(WRITES)(`${says('frees the key')}: %s`, (id) => {
  const KEY = 'key';

  test.each([
    ['the circuit is open', '0', openCircuit, '503 upstream_unavailable', 5],
    ['the upstream wants no calls of the account', '0', heldBack, '429 rate_limited', HOLD],
    ['the account has asked too often', '1', ({ ask: own }: Gateway) => own('getApiKey'), '429 rate_limited', 60],
  ] as const)('while %s', async (...[, limit, prevent, seen, seconds]) => {
    const shop = openGateway({ RATE_LIMIT_PER_MINUTE: limit });
    await prevent(shop);
    for (let time = 0; time < 2; time++) expect(summaryOf(await shop.ask(id, { key: KEY }))).toBe(seen);
    await shop.pass(seconds);
    expect(summaryOf(await shop.ask(id, { key: KEY }))).toMatch(FIRST);
    expect(shop.upstream.callsOf(shop.me, id)).toHaveLength(1);
  });

  test('for want of a slot', async () => {
    const small = openGateway({ UPSTREAM_MAX_CONNECTIONS: '1' });
    const held = small.upstream.hold('getApiKey');
    const busy = small.ask('getApiKey', { token: secret() });
    await held.call;
    const waiting = small.ask(id, { key: KEY });
    await small.pass(0);
    expect(summaryOf(await small.ask(id, { key: KEY }))).toBe(IN_PROGRESS);
    await small.pass(1);
    expect(summaryOf(await waiting)).toBe('503 overloaded');
    held.release();
    await busy;
    expect(small.upstream.callsTo(id)).toEqual([]);
    expect(summaryOf(await small.ask(id, { key: KEY }))).toMatch(FIRST);
  });

  /** A clock that stands still while the machine sleeps, or the time of day. */
  test.each(['now', 'wall'] as const)(
    'while the machine slept until its time was over, which only `%s` tells',
    async (which) => {
      const clock = testClock();
      let sleptMs = 0;
      const slept = { ...clock, [which]: () => clock.now() + sleptMs };
      const small = openGateway({ UPSTREAM_MAX_CONNECTIONS: '1' }, { clock: slept });
      const held = small.upstream.hold('getApiKey');
      const busy = small.ask('getApiKey', { token: secret() });
      await held.call;
      const late = small.ask(id, { key: KEY });
      await small.pass(0);
      sleptMs = 60_000;
      held.release();
      await busy;
      expect(summaryOf(await late)).toBe('504 upstream_timeout');
      sleptMs = 0;
      expect(summaryOf(await small.ask(id, { key: KEY }))).toMatch(FIRST);
    },
  );
});
