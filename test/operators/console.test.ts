import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAdminApp } from '../../src/app.ts';
import { consoleRoutes } from '../../src/entry/node/console/index.ts';
import { Recordings } from '../../src/entry/node/console/recordings.ts';
import { answerOf, type Env, LOG_FOLDER, openGateway } from '../support/gateway.ts';
import { secret } from '../support/secrets.ts';
import { answer, reset } from '../support/upstream.ts';

const OVERVIEW = '/bff/v1/account-overview';
const READ = 'getSubscription';
const DATA = '/console/data';
const HERE = '127.0.0.1:8788';

type Shown = ReturnType<Recordings['shown']>;

/** `get`: from the admin listener. `shown`: what the console shows, which is searched for secrets at the end of the run. */
function open(env: Env = {}) {
  const gateway = openGateway({ SLOW_MS: '500', ADMIN_HOST: 'gateway.internal', ...env });
  const { deps, scrape } = gateway;
  const recordings = deps.recorder instanceof Recordings ? deps.recorder : expect.fail('there is no console');
  const scraped = async () => ({ contentType: 'text/plain', text: await scrape() });
  const admin = createAdminApp(deps, scraped, consoleRoutes(deps.config.adminHost, recordings));
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    answerOf(await admin.request(path, { method, headers: { host: HERE, ...headers } }));
  const shown = async (since = 0): Promise<Shown> => {
    const { text } = await get(`${DATA}?since=${since}`);
    appendFileSync(join(LOG_FOLDER, `${process.pid}.console`), `${text}\n`);
    return JSON.parse(text) as Shown;
  };
  const account = () => gateway.lines.findLast(({ msg }) => msg === 'request')?.['account'];
  return { ...gateway, get, shown, account };
}

const sums = (lines: Readonly<Record<string, readonly number[]>>) =>
  Object.fromEntries(Object.entries(lines).map(([name, counts]) => [name, counts.reduce((a, b) => a + b, 0)]));

describe('what it shows', () => {
  test('a slow request has its legs, and the slow one is as long as the request', async () => {
    const { ask, call, upstream, clock, pass, shown, account } = open();
    await ask(READ);
    const held = upstream.hold('listNotifications');
    const asked = call(OVERVIEW, { headers: { 'X-Request-Id': 'the-slow-one' } });
    await held.call;
    await pass(0);
    clock.advance(700);
    held.release();
    await asked;
    const slow = (await shown()).requests.find(({ isBad }) => isBad);
    expect(slow).toMatchObject({ id: 'the-slow-one', operation: 'getAccountOverview', account: account(), ms: 700 });
    const leg = slow?.legs.find(({ name }) => name === 'notifications');
    expect(leg).toMatchObject({ ms: 700, sums: { attempt: 700, own: 0 } });
    const phases = slow?.phases.filter((phase) => phase.leg === 'notifications');
    expect(phases).toMatchObject([{ phase: 'attempt', start: 0, end: 700, outcome: 'good' }]);
  });

  test('a request that failed has each attempt, why it failed, and the pauses between them', async () => {
    const { ask, upstream, shown } = open();
    upstream.next(READ, answer(503), answer(503), answer(503));
    await ask(READ);
    const [failed] = (await shown()).requests;
    expect(failed).toMatchObject({ status: 503, code: 'upstream_unavailable', reason: 'status', isBad: true });
    const attempt = ['attempt', 'failed', 'status'];
    const pause = ['back-off', undefined, undefined];
    const phases = failed?.phases.map(({ phase, outcome, reason }) => [phase, outcome, reason]);
    expect(phases).toEqual([attempt, pause, attempt, pause, attempt]);
  });

  test('an answer without one of its sections failed too; what the client did wrong did not, and hits leave only counts', async () => {
    const { ask, call, upstream, clock, shown } = open();
    upstream.next('listNotifications', reset(), reset(), reset());
    await call(OVERVIEW);
    await call('/api/v2/nowhere/');
    for (let times = 0; times < 2; times++) await ask(READ);
    const { requests, plots } = await shown();
    const failed = { status: 200, isBad: true, sections: { failed: ['notifications'] }, reason: 'reset' };
    expect(requests).toMatchObject([failed]);
    expect(sums(plots.status)).toEqual({ '2xx': 3, '3xx': 0, '4xx': 1, '5xx': 0 });
    expect(sums(plots.cache)).toMatchObject({ hit: 2, stale: 0 });
    expect(sums(plots.failures)).toEqual({ reset: 3 });
    clock.advance(600_000);
    expect(sums((await shown()).plots.status)).toEqual({ '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 });
  });

  test('the circuit once it is open, and a write of unknown outcome', async () => {
    const { ask, upstream, shown, account } = open();
    expect((await shown()).circuit).toBeNull();
    upstream.next('purchasePlan', ...Array.from({ length: 20 }, reset));
    for (let calls = 0; calls < 20; calls++)
      await ask('purchasePlan', { token: secret(), key: 'one', headers: { 'X-Request-Id': `purchase-${calls}` } });
    const { circuit, unknown, at } = await shown();
    expect(circuit).toEqual({ since: at, probeAt: at + 5_000 });
    const last = { requestId: 'purchase-19', operation: 'purchasePlan', account: account(), hasKey: true, at };
    expect(unknown).toContainEqual(last);
  });

  test('a bounded number of requests, and of those what a page does not know yet', async () => {
    const { ask, upstream, shown } = open();
    const many = 450;
    upstream.next('getApiKey', ...Array.from({ length: many }, () => answer(404)));
    for (let nth = 0; nth < many; nth++) {
      await ask(READ, { token: secret() });
      await ask('getApiKey', { token: secret() });
    }
    const { requests } = await shown();
    expect(requests.length).toBe(200);
    expect(requests.at(-1)).toMatchObject({ number: 2 * many });
    await ask('getReferralConfig');
    expect((await shown(2 * many)).requests).toMatchObject([{ operation: 'getReferralConfig', isBad: false }]);
  });
});

describe('the page', () => {
  test('runs and asks for nothing but what is its own', async () => {
    const { status, headers, text } = await open().get('/console');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const nothing = ['base-uri', 'default-src', 'form-action', 'frame-ancestors'].map((name) => `${name} 'none'`);
    const own = ['connect-src', 'script-src', 'style-src'].map((name) => `${name} 'self'`);
    const policy = headers.get('content-security-policy')?.split('; ');
    expect(policy?.toSorted()).toEqual([...nothing, ...own, 'img-src data:'].toSorted());
    expect(text).not.toMatch(/https?:|<script>|<style|\son\w+=|\sstyle=/);
  });

  test('and its data take GET and HEAD only, are nothing on the public listener, and have no line in the log', async () => {
    const { get, call, lines } = open();
    for (const path of ['/console', DATA]) {
      expect(await get(path, {}, 'HEAD')).toMatchObject({ status: 200, text: '' });
      expect(await get(path, {}, 'POST')).toMatchObject({ status: 405, code: 'method_not_allowed' });
    }
    expect(lines.filter(({ status }) => status === 200)).toEqual([]);
    for (const path of ['/console', '/console/console.js', DATA])
      expect(await call(path)).toMatchObject({ status: 404, code: 'unknown_endpoint' });
  });
});

const NAMES = ['10.1.2.3:8788', '[::1]:8788', '[fd00::1]', 'localhost', 'LocalHost:8788', 'GATEWAY.internal'];
const REBOUND = ['rebound.example:8788', '127.0.0.1.rebound.example', 'rebound-localhost', '1.2.3.4.nip.io'];

test.each(['/console', '/console/console.js', DATA])(
  '%s is shown at no name that was made to lead here, nor to other sites',
  async (path) => {
    const { get } = open();
    for (const host of NAMES) expect([host, (await get(path, { host })).status]).toEqual([host, 200]);
    for (const host of [...REBOUND, 'gateway.internal.rebound.example'])
      expect([host, (await get(path, { host })).code]).toEqual([host, 'forbidden']);
    for (const site of ['cross-site', 'same-site'])
      expect((await get(path, { 'sec-fetch-site': site, 'sec-fetch-mode': 'cors' })).code).toBe('forbidden');
    expect((await get(path, { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' })).status).toBe(200);
    // A link may lead to the page; in a frame of that site the data would take the place of a page.
    const link = await get(path, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' });
    expect(link.status).toBe(path === '/console' ? 200 : 403);
  },
);
