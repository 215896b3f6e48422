import { onTestFinished, describe, expect, test } from 'vitest';
import { Agent } from 'undici';
import { createApp, createRefuser } from '../../src/app.ts';
import { nodeDeps } from '../../src/entry/node/deps.ts';
import { serve } from '../../src/entry/node/server/serve.ts';
import { type OperationId, accountTables } from '../support/account-api.ts';
import { limitedFor, limitOf } from './helpers.ts';
import { PLAIN } from '../resilience/helpers.ts';
import { manualClock } from '../support/clock.ts';
import { configOf, keepingLogger, type LogLine } from '../support/gateway.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { socialIds } from '../support/table.ts';
import { exampleRequest } from '../support/examples.ts';

const LOGIN = 'loginSocial';
const PER_MINUTE = 20;

type Headers = Readonly<Record<string, string>>;

interface Asking {
  readonly from?: string;
  readonly headers?: Headers;
  readonly id?: OperationId;
  readonly token?: string;
}

/** The gateway with its listener told whom to trust, as `entry/node.ts` does it, and clients of several addresses. */
const openDoors = async (env: Headers = {}) => {
  const upstream = await startUpstream();
  for (const id of [...socialIds, PLAIN]) upstream.on(callOf(id), json(200, bodyOf(id, 1)));
  const config = configOf({ UPSTREAM_BASE_URL: upstream.url, ...env });
  const lines: LogLine[] = [];
  const logger = keepingLogger(lines);
  const clock = manualClock();
  const built = nodeDeps({
    ...accountTables,
    config,
    upstream: new URL(upstream.url),
    logger,
    readiness: { isReady: () => true },
  });
  const { idle } = built;
  const deps = { ...built.deps, clock, store: memoryStore(clock) };
  const { waitUntil } = deps;
  const served = { app: createApp(deps), refuse: createRefuser(deps), waitUntil };
  const listener = await serve({ ...served, host: '127.0.0.1', port: 0 });
  const agents = new Map<string, Agent>();
  const agentOf = (localAddress: string) => {
    const agent = agents.get(localAddress) ?? new Agent({ localAddress });
    agents.set(localAddress, agent);
    return agent;
  };
  onTestFinished(async () => {
    await Promise.all(Array.from(agents.values(), (agent) => agent.close()));
    await listener.drain(0);
    await built.close();
    await idle();
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  const ask = async ({ from = '127.0.0.1', headers = {}, id = LOGIN, token }: Asking = {}) => {
    const { method, path, body } = exampleRequest(id);
    const authorization = token === undefined ? {} : { authorization: `Token ${token}` };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const {
      statusCode,
      headers: given,
      body: sent,
    } = await agentOf(from).request({
      origin: listener.url,
      path,
      method,
      headers: { ...type, ...authorization, ...headers },
      body: typeof body === 'string' ? body : null,
    });
    const text = await sent.text();
    const flat = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]));
    return { status: statusCode, headers: flat, cookies: [], text, json: JSON.parse(text) as unknown };
  };
  /** As many as a minute has room for. */
  const useUp = async (asking?: Asking) => {
    for (let asked = 0; asked < PER_MINUTE; asked++) expect(await ask(asking)).toMatchObject({ status: 200 });
  };
  return { upstream, clock, lines, ask, useUp };
};

const forwarded = (list: string): Headers => ({ 'X-Forwarded-For': list });

describe('calls without a credential', () => {
  test('are 20 a minute of one address', async () => {
    const { ask, useUp, upstream, clock } = await openDoors();
    expect(limitOf(await ask())).toEqual(['address', PER_MINUTE, 19, 60]);
    for (let asked = 1; asked < PER_MINUTE; asked++) {
      const id = socialIds[asked % socialIds.length]!;
      expect(limitOf(await ask({ id }))).toEqual(['address', PER_MINUTE, 19 - asked, 60]);
    }
    clock.advance(20_000);
    expect(limitedFor(await ask())).toBe(40);
    expect(limitedFor(await ask({ id: 'registerSocial' }))).toBe(40);
    expect(upstream.calls).toHaveLength(PER_MINUTE);
    clock.advance(40_000);
    await useUp();
  });

  test('of another address are counted apart', async () => {
    const { ask, useUp } = await openDoors();
    await useUp();
    expect(limitOf(await ask({ from: '127.0.0.2' }))).toEqual(['address', PER_MINUTE, 19, 60]);
    expect(limitedFor(await ask())).toBe(60);
  });

  test('say nothing about accounts, and accounts nothing about them', async () => {
    const { ask, useUp } = await openDoors({ RATE_LIMIT_PER_MINUTE: '1' });
    const token = secret();
    await useUp();
    expect(limitOf(await ask({ id: PLAIN, token }))).toEqual(['account', 1, 0, 60]);
    expect(limitedFor(await ask({ id: PLAIN, token }))).toBe(60);
  });

  test('are counted by address where they come with a credential too', async () => {
    const { ask } = await openDoors();
    for (let asked = 0; asked < PER_MINUTE; asked++) await ask({ token: secret() });
    expect(limitedFor(await ask({ token: secret() }))).toBe(60);
  });

  test('are logged without an account when they are refused', async () => {
    const { ask, useUp, lines } = await openDoors();
    await useUp();
    await ask();
    expect(lines.at(-1)).toMatchObject({ status: 429, code: 'rate_limited', operation: LOGIN });
    expect(lines.at(-1)).not.toHaveProperty('account');
  });
});

describe('X-Forwarded-For', () => {
  test('is not believed from anybody without TRUSTED_PROXIES', async () => {
    const { ask, useUp } = await openDoors();
    await useUp();
    for (const list of ['203.0.113.7', '198.51.100.1, 203.0.113.7', '127.0.0.1']) {
      expect(limitedFor(await ask({ headers: forwarded(list) }))).toBe(60);
    }
  });

  test('is believed from a proxy that is trusted, and only from one', async () => {
    const { ask, useUp } = await openDoors({ TRUSTED_PROXIES: '127.0.0.2' });
    await useUp({ from: '127.0.0.2', headers: forwarded('203.0.113.7') });
    expect(limitedFor(await ask({ from: '127.0.0.2', headers: forwarded('203.0.113.7') }))).toBe(60);
    expect(await ask({ from: '127.0.0.2', headers: forwarded('203.0.113.8') })).toMatchObject({ status: 200 });
    // Whoever comes by another way is who they are.
    await useUp({ from: '127.0.0.3', headers: forwarded('203.0.113.9') });
    expect(limitedFor(await ask({ from: '127.0.0.3', headers: forwarded('203.0.113.10') }))).toBe(60);
  });

  test('is read from its end: what a client has put before it is not', async () => {
    const { ask, useUp } = await openDoors({ TRUSTED_PROXIES: '127.0.0.0/8' });
    await useUp({ headers: forwarded('203.0.113.7') });
    for (const list of ['198.51.100.1, 203.0.113.7', '198.51.100.2,198.51.100.1,203.0.113.7', 'x, 203.0.113.7']) {
      expect(limitedFor(await ask({ headers: forwarded(list) }))).toBe(60);
    }
    // A proxy before that one which is trusted as well.
    expect(limitedFor(await ask({ headers: forwarded('203.0.113.7, 127.0.0.9') }))).toBe(60);
    expect(await ask({ headers: forwarded('203.0.113.8, 127.0.0.9') })).toMatchObject({ status: 200 });
  });

  test('names one client by all addresses of its IPv6 network', async () => {
    const { ask, useUp } = await openDoors({ TRUSTED_PROXIES: '127.0.0.1' });
    await useUp({ headers: forwarded('2001:db8:1:2::7') });
    expect(limitedFor(await ask({ headers: forwarded('2001:db8:1:2:ffff::1') }))).toBe(60);
    expect(await ask({ headers: forwarded('2001:db8:1:3::7') })).toMatchObject({ status: 200 });
  });
});
