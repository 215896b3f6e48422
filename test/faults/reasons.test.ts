import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Reason } from '../../src/core/errors.ts';
import { barrier, bytes, close, hold, json, reply, startUpstream } from '../support/scripted-upstream.ts';
import { openDoor } from '../support/door.ts';
import { shownBy } from '../console/data.ts';
import type { LogLine } from '../support/gateway.ts';
import { openTraced } from '../traces/helpers.ts';
import { call } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { selfSigned } from '../support/self-signed.ts';
import { callOf, pathOf } from '../support/marked.ts';
import { openWorld } from '../support/world.ts';

const READ = 'getSubscription';

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** An upstream that wants TLS and whose port is asked without: it says so by an alert. */
async function alerting(): Promise<string> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.on(() => true, reply(bytes('\x15\x03\x01\x00\x02\x02\x46'), close()));
  return upstream.url;
}

async function refusing(): Promise<string> {
  const door = await openDoor('http://127.0.0.1:9');
  await door.shut();
  return door.url;
}

interface Provoked {
  /** Where the gateway is to find its upstream. */
  readonly url: () => string | Promise<string>;
  readonly reason: Reason;
  readonly errno?: string;
  readonly code?: string;
}

/** Ways for an upstream to fail that gave one and the same line. */
const PROVOKED: Readonly<Record<string, Provoked>> = {
  'a certificate that nobody trusts': {
    url: async () => `https://127.0.0.1:${await portOf(createHttps(selfSigned))}`,
    reason: 'tls',
    errno: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  },
  'a name without an address': {
    url: () => 'http://nothing.invalid',
    reason: 'dns',
    errno: 'ENOTFOUND',
  },
  'a port that refuses': { url: refusing, reason: 'refused', errno: 'ECONNREFUSED' },
  'TLS at a plain port': {
    url: async () => `https://127.0.0.1:${await portOf(createHttp())}`,
    reason: 'tls',
    errno: 'ERR_SSL_WRONG_VERSION_NUMBER',
  },
  'plain text at a TLS port, of a server that says so': {
    url: alerting,
    reason: 'tls',
    code: 'upstream_bad_response',
  },
};

const isReason = ({ reason, msg }: LogLine) => reason !== undefined && msg !== 'request';

describe.each(Object.entries(PROVOKED))('%s', (_, { url, reason, errno, code = 'upstream_unreachable' }) => {
  test('is named by the line, the metric, one warning, the trace and the console', async () => {
    const at = await url();
    const { gateway, told } = await openTraced({ at, admin: true });
    for (let times = 0; times < 2; times++) {
      const answer = await call(gateway.url, { path: pathOf(READ), token: secret() });
      expect(answer).toMatchObject({ status: 502, json: { code } });
      expect(JSON.stringify(answer.json)).not.toContain(reason);
    }
    const lines = gateway.lines.filter(({ msg }) => msg === 'request');
    expect(lines).toMatchObject([
      { level: 'error', status: 502, code, reason },
      { level: 'error', status: 502, code, reason },
    ]);
    const warned = gateway.lines.filter(isReason);
    expect(warned).toEqual([expect.objectContaining({ level: 'warn', reason, msg: 'the upstream fails' })]);
    if (errno !== undefined) expect(warned[0]?.errno).toBe(errno);
    const { text } = await call(gateway.adminUrl ?? '', { path: '/metrics' });
    const series = `portico_upstream_calls_total{operation="${READ}",outcome="failed",reason="${reason}"}`;
    expect(Number(text.split(`${series} `)[1]?.split('\n')[0])).toBeGreaterThan(0);
    const { requests: shown } = await shownBy(gateway);
    expect(shown).toMatchObject([
      { status: 502, reason },
      { status: 502, reason },
    ]);
    expect(shown[0]?.phases.filter(({ phase }) => phase === 'attempt')[0]).toMatchObject({ outcome: 'failed', reason });
    const spans = await told();
    expect(spans.filter(({ kind }) => kind === 'server').map(({ facts }) => facts['portico.reason'])).toEqual([
      reason,
      reason,
    ]);
    const attempts = spans.filter(({ kind }) => kind === 'client').map(({ facts }) => facts['error.type']);
    expect(new Set(attempts)).toEqual(new Set([reason]));
  });
});

test('the warning comes once a minute for each reason, with the status where that is the reason', async () => {
  const world = await openWorld();
  const fail = async (...answers: ReturnType<typeof json>[]) => {
    for (const answer of answers) {
      world.upstream.on(callOf(READ), answer);
      await world.ask(READ, { token: secret() });
    }
  };
  const warned = () => world.gateway.lines.filter(isReason).map((line) => [line.reason, line['upstream_status']]);
  const [failure, unreadable] = [json(500, {}), json(200, '?')];
  for (let times = 0; times < 5; times++) await fail(failure, unreadable, json(301, ''));
  const each = [
    ['status', 500],
    ['bad_body', undefined],
  ];
  expect(warned()).toEqual(each);
  world.advance(59);
  await fail(failure, unreadable);
  expect(warned()).toEqual(each);
  world.advance(1);
  await fail(failure, failure);
  expect(warned()).toEqual([...each, ['status', 500]]);
});

test('a write that may have happened says so in its line, and one that was not sent does not', async () => {
  const world = await openWorld();
  world.upstream.on(callOf('purchasePlan'), json(500, {}));
  await world.ask('purchasePlan');
  const lines = world.gateway.lines.filter(({ msg }) => msg === 'request');
  expect(lines).toMatchObject([{ status: 502, outcome: 'unknown', operation: 'purchasePlan' }]);
  const door = await openWorld({}, { hasDoor: true });
  await door.door?.shut();
  await door.ask('purchasePlan');
  const [unsent] = door.gateway.lines.filter(({ msg }) => msg === 'request');
  expect(unsent).toMatchObject({ status: 502, reason: 'refused' });
  expect(unsent).not.toHaveProperty('outcome');
});

test('a client that joined the call of another has the reason in its line too', async () => {
  const world = await openWorld();
  const gate = barrier();
  world.upstream.on(callOf(READ), reply(hold(gate), json(500, {})));
  const waiting = world.store.lookups.next(2);
  const both = [world.ask(READ), world.ask(READ)];
  await waiting;
  gate.release();
  await Promise.all(both);
  expect(world.upstream.calls).toHaveLength(1);
  const lines = world.gateway.lines.filter(({ msg }) => msg === 'request');
  expect(lines).toMatchObject([{ reason: 'status' }, { reason: 'status' }]);
});
