import { beforeEach, expect, test } from 'vitest';
import { Recordings } from '../../src/entry/node/console/recordings.ts';
import { barrier, hold, json, reply, reset } from '../support/scripted-upstream.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';
import { shownBy } from './data.ts';

const OVERVIEW = '/bff/v1/account-overview';
const READ = 'getSubscription';

let world: World;

beforeEach(async () => {
  world = await openWorld({ SLOW_MS: '500' }, { hasAdmin: true });
  world.answerAll();
});

/** Has an operation answered late, by so many milliseconds. */
async function late(id: Parameters<typeof callOf>[0], ms: number, ask: () => Promise<unknown>) {
  const held = barrier();
  world.upstream.once(callOf(id), reply(hold(held), json(200, bodyOf(id, 1))));
  const asked = ask();
  await held.reached;
  const metrics = async () => (await world.admin({ path: '/metrics' })).text;
  await expect.poll(metrics).toMatch(/^portico_upstream_calls_under_way 1$/m); // all others have their answers
  world.advance(ms / 1000);
  held.release();
  await asked;
}

const sums = (lines: Readonly<Record<string, readonly number[]>>) =>
  Object.fromEntries(Object.entries(lines).map(([name, counts]) => [name, counts.reduce((a, b) => a + b, 0)]));

test('a slow request has its legs, and the slow one is as long as the request', async () => {
  await world.ask(READ);
  const headers = { 'X-Request-Id': 'the-slow-one' };
  await late('listNotifications', 700, () => world.call({ path: OVERVIEW, token: world.token, headers }));
  const { requests, slowMs } = await shownBy(world.gateway);
  const account = world.gateway.lines.find(({ msg }) => msg === 'request')?.account;
  const slow = requests.find(({ isBad }) => isBad);
  expect(slowMs).toBe(500);
  expect(slow).toMatchObject({
    id: 'the-slow-one',
    operation: 'getAccountOverview',
    status: 200,
    account,
    ms: 700,
    sections: { fresh: ['subscription'] },
  });
  const legs = slow?.legs.toSorted((a, b) => b.ms - a.ms);
  expect(legs?.[0]).toMatchObject({ name: 'notifications', ms: 700, sums: { attempt: 700, own: 0 } });
  expect(legs?.map(({ name }) => name)).not.toContain('subscription');
  const phases = slow?.phases.filter(({ leg }) => leg === 'notifications');
  expect(phases).toMatchObject([{ phase: 'attempt', start: 0, end: 700, outcome: 'good' }]);
});

test('a request that failed has each attempt, why it failed, and the pauses between them', async () => {
  world.upstream.on(callOf(READ), json(503, ''));
  await world.ask(READ);
  const [failed] = (await shownBy(world.gateway)).requests;
  expect(failed).toMatchObject({ status: 503, code: 'upstream_unavailable', reason: 'status', isBad: true });
  const attempt = ['attempt', 'failed', 'status'];
  const pause = ['back-off', undefined, undefined];
  const phases = failed?.phases.map(({ phase, outcome, reason }) => [phase, outcome, reason]);
  expect(phases).toEqual([attempt, pause, attempt, pause, attempt]);
});

test('an answer without one of its sections failed too; what the client did wrong is no failure, and hits leave only counts', async () => {
  world.upstream.once(callOf('listNotifications'), reset());
  world.upstream.once(callOf('listNotifications'), reset());
  world.upstream.once(callOf('listNotifications'), reset());
  await world.call({ path: OVERVIEW, token: world.token });
  await world.call({ path: '/api/v2/nowhere/', token: world.token });
  await world.ask(READ);
  await world.ask(READ);
  const { requests, plots } = await shownBy(world.gateway);
  expect(requests).toMatchObject([
    { status: 200, isBad: true, sections: { failed: ['notifications'] }, reason: 'reset' },
  ]);
  expect(sums(plots.status)).toEqual({ '2xx': 3, '3xx': 0, '4xx': 1, '5xx': 0 });
  expect(sums(plots.cache)).toMatchObject({ hit: 2, stale: 0 });
  expect(sums(plots.failures)).toEqual({ reset: 3 });
  expect(plots.duration.p95.at(-1)).toEqual(expect.any(Number));
  world.advance(600);
  expect(sums((await shownBy(world.gateway)).plots.status)).toEqual({ '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 });
});

test('a page is told what it does not know yet', async () => {
  await world.ask(READ);
  const { requests } = await shownBy(world.gateway);
  expect(requests).toMatchObject([{ operation: READ, isBad: false, number: 1 }]);
  await world.ask('getReferralConfig');
  expect((await shownBy(world.gateway, 1)).requests).toMatchObject([{ operation: 'getReferralConfig', number: 2 }]);
});

test('accounts that ask most come first, and are counted anew every ten minutes', async () => {
  const [most, least] = [secret(), secret()];
  world.advance(600 - ((world.clock.now() / 1_000) % 600));
  for (const token of [least, most, most, most]) await world.ask(READ, { token });
  const counts = async () => (await shownBy(world.gateway)).accounts.map(({ requests, failed }) => [requests, failed]);
  expect(await counts()).toEqual([
    [3, 0],
    [1, 0],
  ]);
  world.advance(600);
  expect(await counts()).toEqual([]);
});

test('the circuit is closed at first, then open with the time of its next probe', async () => {
  expect((await shownBy(world.gateway)).circuit).toBeNull();
  world.upstream.on(callOf(READ), json(500, ''));
  for (let calls = 0; calls < 30; calls++) await world.ask(READ, { token: secret() });
  const { circuit, at } = await shownBy(world.gateway);
  expect(circuit).toEqual({ since: at, probeAt: at + 5_000 });
});

test('a write of unknown outcome is there with its operation, account and request id', async () => {
  world.upstream.on(callOf('purchasePlan'), json(500, ''));
  await world.ask('purchasePlan', { headers: { 'X-Request-Id': 'the-purchase' }, key: 'one' });
  const { unknown, at } = await shownBy(world.gateway);
  const account = world.gateway.lines.find(({ msg }) => msg === 'request')?.account;
  expect(unknown).toEqual([{ requestId: 'the-purchase', operation: 'purchasePlan', account, hasKey: true, at }]);
});

test('no key, id in a path, query or body of a client is in it, and no host', async () => {
  world.upstream.on(callOf('listTransactions'), json(500, ''));
  world.upstream.on(callOf('getApiKey'), json(500, ''));
  const token = secret();
  await world.call({ path: '/api/v2/payments/transactions/?page=77123', token });
  await world.ask('getApiKey', { token });
  await world.ask('loginSocial');
  const text = JSON.stringify(await shownBy(world.gateway));
  expect(text).toContain('getApiKey');
  for (const hidden of [token, '77123', '127.0.0.1', '/api/', 'localhost']) expect(text).not.toContain(hidden);
});

test('what is remembered is bounded', () => {
  const recordings = new Recordings(500);
  const request = {
    requestId: 'one',
    method: 'GET',
    route: { name: '/' },
    begunAt: 0,
    code: 'x'.repeat(1_000),
    reason: undefined,
    fresh: undefined,
    failed: undefined,
    stale: undefined,
  };
  for (let nth = 0; nth < 6_000; nth++) {
    const account = `account-${nth}`;
    recordings.answered({ ...request, account }, 500, 1);
    recordings.answered({ ...request, account, phases: [] }, 200, 1);
    recordings.unknown({ requestId: 'one', operation: 'two', account, hasKey: false, at: 1 });
  }
  const { requests, accounts, unknown } = recordings.shown(0, 1);
  expect([requests.length, accounts.length, unknown.length]).toEqual([400, 10, 100]);
  expect(requests.at(-1)).toMatchObject({ number: 12_000 });
  expect(JSON.stringify(requests).length).toBeLessThan(400 * 600);
});
