import { beforeEach, describe, expect, test } from 'vitest';
import { noAnswer } from '../../../src/upstream/transport.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, hang, type Reply, refused, reset } from '../../support/upstream.ts';
import { openCircuit, summaryOf } from './helpers.ts';

const PLAIN = 'getPendingPayment';
/** Never tried again: one call each, whatever becomes of it. */
const WRITE = 'createApiKey';
const READ = 'getSubscription';
const OPEN = '503 upstream_unavailable';

everywhere(
  says('It opens when these are 20 or more and half of them failed (5xx, time-outs, connection errors;'),
  async ({ ask, upstream, me }) => {
    const replies = [undefined, undefined, answer(500), reset(), answer(504)];
    for (const reply of [...replies, ...replies, ...replies, ...replies]) {
      if (reply) upstream.next(WRITE, reply);
      expect((await ask(WRITE, { token: secret() })).status === 200).toBe(reply === undefined);
    }
    for (const id of [PLAIN, WRITE] as const) expect(summaryOf(await ask(id))).toBe(OPEN);
    expect(upstream.callsOf(me)).toEqual([]);
  },
  { not: ['fleet'] }, // each instance has its own
);

everywhere(
  says('of each account (without one: of each address) the last five at most'),
  async ({ ask, upstream, me }) => {
    const others = Array.from({ length: 3 }, () => secret());
    for (let n = 0; n < 10; n++) for (const token of others) await ask(PLAIN, { token });
    for (let n = 0; n < 50; n++) {
      upstream.next(WRITE, answer(500));
      expect((await ask(WRITE)).status).toBe(502);
    }
    expect(upstream.callsOf(me)).toHaveLength(50);
    expect(await ask(PLAIN)).toMatchObject({ status: 200 });
  },
);

everywhere(says('never 4xx)'), async ({ ask, upstream }) => {
  for (let n = 0; n < 60; n++) {
    upstream.next(WRITE, answer([400, 404, 408, 451][n % 4]!));
    await ask(WRITE, { token: secret() });
  }
  expect(await ask(PLAIN)).toMatchObject({ status: 200 });
});

everywhere(
  says('and lets one call through after 5 s'),
  async ({ ask, upstream, pass }) => {
    for (let bad = 0; bad < 20; bad++) {
      upstream.next(WRITE, answer(500));
      await ask(WRITE, { token: secret() });
    }
    expect(summaryOf(await ask(PLAIN))).toBe(OPEN);
    await pass(5);
    const held = upstream.hold(PLAIN);
    const probe = ask(PLAIN, { token: secret() });
    await held.call;
    for (let n = 0; n < 5; n++) expect(summaryOf(await ask(PLAIN, { token: secret() }))).toBe(OPEN);
    held.release();
    expect(await probe).toMatchObject({ status: 200 });
    for (let n = 0; n < 5; n++) expect(await ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
  },
  { time: true, not: ['fleet'] },
);

everywhere(
  says('Open: stale copies, else 503 at once.'),
  async ({ ask, upstream, pass, me }) => {
    for (let n = 0; n < 2; n++) expect((await ask(READ)).version).toBe(1);
    await pass(400);
    await openCircuit({ ask, upstream });
    for (let n = 0; n < 2; n++)
      expect(await ask(READ)).toMatchObject({ version: 1, cache: expect.stringMatching(/^portico; hit; ttl=-\d+$/) });
    for (const id of [PLAIN, 'purchasePlan'] as const) expect(summaryOf(await ask(id))).toBe(OPEN);
    expect((await ask(PLAIN)).json).toMatchObject({ retry_after: 5, retryable: true });
    expect(upstream.callsOf(me, PLAIN)).toEqual([]);
  },
  { time: true },
);

const shop = openGateway();
const { ask, upstream, pass, lines } = shop;

beforeEach(async () => {
  await ask(PLAIN); // closes what the test before has left open
  await pass(10);
  upstream.calls.length = 0;
});

const BAD = answer(500);

/** Writes one after the other, each of an account of its own unless one is named. */
const send = async (times: number, reply?: Reply, token?: string) => {
  for (let n = 0; n < times; n++) {
    if (reply !== undefined) upstream.next(WRITE, reply);
    await ask(WRITE, { token: token ?? secret() });
  }
};

const isOpen = async () => {
  const before = upstream.calls.length;
  const { status } = await ask(PLAIN, { token: secret() });
  expect([status, upstream.calls.length - before]).toEqual(status === 503 ? [503, 0] : [200, 1]);
  return status === 503;
};

test.each([
  [10, 10, true],
  [0, 20, true],
  [11, 9, false],
  [0, 19, false],
])(`${says('20 or more and half of them failed')}: %d good and %d bad calls`, async (good, bad, is) => {
  await send(good);
  await send(bad, BAD);
  expect(await isOpen()).toBe(is);
});

test(`${says('looks at the calls of the last 10 s')}, good and bad`, async () => {
  await send(40);
  await send(19, BAD);
  await pass(10);
  await send(19, BAD);
  expect(await isOpen()).toBe(false);
  await pass(10);
  for (const seconds of [9, 0]) {
    await send(10, BAD);
    await pass(seconds);
  }
  expect(await isOpen()).toBe(true);
});

/** Good and bad calls of each account. All cases there are: test/rules/circuit.test.ts. */
test.each([
  ['30+10', true],
  ['25+0 25+0 0+25', false],
  ['25+5 25+5 5+0 5+0', true],
])(`${says('or an equal part of 20 where fewer than four have called')}: %s`, async (text, is) => {
  const callers = text.split(' ').map((one) => ({ token: secret(), calls: one.split('+').map(Number) }));
  for (const { calls, token } of callers) await send(calls[0]!, undefined, token);
  for (const { calls, token } of callers) await send(calls[1]!, BAD, token);
  expect(await isOpen()).toBe(is);
});

test(says('(without one: of each address)'), async () => {
  await send(15);
  for (const [nth, calls] of [40, 40, 40, 4].entries()) {
    expect(await isOpen()).toBe(false);
    for (let n = 0; n < calls; n++) {
      upstream.next('loginSocial', BAD);
      await ask('loginSocial', { address: `203.0.113.${nth}` });
    }
  }
  expect(await isOpen()).toBe(true); // with those of the test itself 19 of 38
});

test.each<readonly [string, Reply, boolean]>([
  ...[501, 503, 599].map((status) => [String(status), answer(status), true] as const),
  ['no connection', refused(), true],
  ['an answer cut off', { ...answer(200), body: { flaw: 'cut_short' as const } }, true],
  ['what is not HTTP', noAnswer('malformed', 'bad_body'), true],
  ['429', answer(429), false],
  ['a redirect', answer(302, '', { location: '/' }), false],
])(`${says('half of them failed (5xx, time-outs, connection errors')}: %s`, async (_, reply, isFailure) => {
  await send(20, reply);
  expect(await isOpen()).toBe(isFailure);
  if (isFailure) return;
  await send(18, BAD);
  expect(await isOpen()).toBe(false); // 18 of 40: the others count as calls
});

test(`${says('(5xx, time-outs, connection errors; never 4xx)')}: no answer in time, but not whose client has left`, async () => {
  for (const isLeft of [true, false]) {
    const client = new AbortController();
    upstream.next(WRITE, ...Array<Reply>(isLeft ? 0 : 20).fill(hang()));
    upstream.next(PLAIN, ...Array<Reply>(isLeft ? 20 : 0).fill(hang()));
    const own = isLeft ? { signal: client.signal } : {};
    const asked = Array.from({ length: 20 }, () => ask(isLeft ? PLAIN : WRITE, { token: secret(), ...own }));
    await pass(isLeft ? 0 : 5);
    client.abort();
    await Promise.all(asked);
    expect(await isOpen()).toBe(!isLeft);
  }
});

const askAs = async (token: string, reply?: Reply) => {
  if (reply !== undefined) upstream.next(WRITE, reply);
  return summaryOf(await ask(WRITE, { token }));
};

/** The next call is let through. */
const due = async () => {
  await openCircuit(shop);
  await pass(5);
};

describe(says('lets one call through after 5 s'), () => {
  test('not a moment before, nor for what is refused meanwhile; and it says so in the log', async () => {
    await openCircuit(shop);
    for (let n = 0; n < 50; n++) expect(await isOpen()).toBe(true);
    await pass(4.999);
    expect((await ask(PLAIN)).json.retry_after).toBe(1);
    await pass(0.001);
    for (let n = 0; n < 2; n++) expect(await isOpen()).toBe(false);
    const told = lines.flatMap(({ msg }) => (msg.startsWith('circuit') ? msg.split(':')[0] : []));
    expect(told.slice(-2)).toEqual(['circuit opened', 'circuit closed']);
  });

  test.each([404, 429])('a %i closes it too, and failures from before are forgotten', async (status) => {
    await due();
    await askAs(secret(), answer(status));
    await send(18, BAD);
    expect(await isOpen()).toBe(false);
  });

  test('its failure does not; it is not retried, and another account goes first', async () => {
    await due();
    const [failing, other] = [secret(), secret()];
    upstream.next(PLAIN, answer(503));
    expect((await ask(PLAIN, { token: failing })).status).toBe(503);
    expect(upstream.callsOf(failing)).toHaveLength(1);
    for (const token of [failing, other]) expect(await askAs(token)).toBe(OPEN);
    await pass(5);
    expect(await askAs(failing)).toBe(OPEN);
    expect(await askAs(other)).toMatch(/^200/);
  });

  test.each(['leaves', 'hangs'])('whose client %s is followed by the next one', async (what) => {
    await due();
    const client = new AbortController();
    upstream.next(PLAIN, hang());
    const probe = ask(PLAIN, { token: secret(), signal: client.signal });
    await upstream.arrived(PLAIN, 1);
    if (what === 'leaves') client.abort();
    await pass(what === 'leaves' ? 0 : 5);
    await probe;
    expect(await isOpen()).toBe(false);
  });
});
