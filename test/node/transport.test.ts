import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fromEnv } from '../../src/entry/node/index.ts';
import { portico } from '../../src/index.ts';
import { proxyAccount } from '../../src/proxy-account/index.ts';
import { says } from '../support/contract.ts';
import { exampleBody } from '../support/examples.ts';
import { startGateway } from '../support/gateway.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { libraryClock } from '../support/library-clock.ts';
import { bodyOf, callOf, markOf } from '../support/marked.ts';
import { expectProblem } from '../support/problem.ts';
import {
  barrier,
  bytes,
  close,
  hang,
  hold,
  httpResponse,
  json,
  letRead,
  reply,
  startUpstream,
  type Step,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { selfSigned } from '../support/self-signed.ts';
import { openWorld, type World } from '../support/world.ts';
import { chunk, CHUNKED, FAULTS, GOOD, GOOD_ANSWERS, packed } from './faults.ts';

/** Answers of the upstream as bytes, and what comes of each. */

const READ = 'GET /api/v2/subscription/';
const WRITE = 'POST /api/v2/apikey/';

const ask = ({ call: asks }: World, token = secret()) => asks({ path: '/api/v2/subscription/', token });
const write = ({ call: asks }: World) => asks({ path: '/api/v2/apikey/', token: secret(), body: {} });

/** The answer to what is asked for; where nobody would answer the time of an attempt passes. */
const answered = async (
  { upstream, advance }: World,
  match: string,
  asked: ReturnType<typeof ask>,
  isLate: boolean,
) => {
  if (isLate) {
    await upstream.waitForCalls(1, match);
    advance(5);
  }
  return asked;
};

const reasonsIn = ({ gateway }: { readonly gateway: Pick<World['gateway'], 'lines'> }) =>
  gateway.lines.filter(({ msg }) => msg === 'request').map((line) => line['reason']);

describe.each(FAULTS)('$name', ({ outcome: [status, code, reason], what, isKept }) => {
  const isLate = status === 504;

  test('is what it is called, to a read and to a write, and nothing of it comes to the next account', async () => {
    const world = await openWorld();
    const { upstream } = world;
    upstream.on(READ, what).on(WRITE, what);
    const read = await answered(world, READ, ask(world), isLate);
    expectProblem(read, { status, code });
    const written = await answered(world, WRITE, write(world), isLate);
    expect(expectProblem(written, { status, code }).outcome).toBe('unknown');
    expect(upstream.callsTo(WRITE)).toHaveLength(1);
    expect(reasonsIn(world)).toEqual([reason, reason]);
    const struck = [...upstream.calls];
    if (!isKept) await Promise.all(struck.map((one) => upstream.disconnected(one)));
    upstream.on(READ, json(200, GOOD));
    expect(await ask(world)).toMatchObject({ status: 200, text: GOOD });
    // Of one that is too large nobody waits for the rest.
    const { socket } = upstream.calls.at(-1)!;
    if (reason !== 'too_large') expect(struck.some((one) => one.socket === socket)).toBe(isKept);
  });
});

test.each(Object.entries(GOOD_ANSWERS))('%s is as good as any', async (_, what) => {
  const world = await openWorld();
  world.upstream.on(READ, what);
  for (let n = 0; n < 2; n++) {
    const answer = await ask(world);
    expect(answer).toMatchObject({ status: 200, text: GOOD });
    expect(answer.headers).not.toHaveProperty('content-encoding');
  }
});

const sized = (length: number) => `"${'x'.repeat(length - 2)}"`;

describe(says('a larger answer is a bad one'), () => {
  test.each<readonly [string, Step, number]>([
    ['by its length', json(200, sized(1001)), 502],
    ['by what comes', reply(bytes(`HTTP/1.1 200 OK\r\n\r\n${' '.repeat(1001)}`), hang()), 502],
    ['once it is unpacked', packed(gzipSync(sized(1001))), 502],
    ['but one of exactly as many', json(200, sized(1000)), 200],
    ['but one of exactly as many once it is unpacked', packed(gzipSync(sized(1000))), 200],
  ])('%s', async (_, what, status) => {
    const world = await openWorld({ UPSTREAM_MAX_BODY_BYTES: '1000' });
    world.upstream.on(READ, what);
    expect((await ask(world)).status).toBe(status);
  });
});

test.each(['gzip', 'br', 'zstd', 'deflate', 'identity', 'gzip, br', '', 'x-nothing'])(
  'an empty body is empty in the coding `%s` too: what needs none is done, and a refusal keeps its status',
  async (coding) => {
    const world = await openWorld();
    const path = '/api/v2/proxy/ipauthorization/5/';
    for (const status of [200, 204, 404]) {
      world.upstream.on(`DELETE ${path}`, json(status, '', { 'content-encoding': coding }));
      expect((await world.call({ method: 'DELETE', path, token: secret() })).status).toBe(status);
    }
  },
);

test('a connection is given up where what is packed ends and the answer does not', async () => {
  const world = await openWorld();
  const body = Buffer.concat([brotliCompressSync(GOOD), Buffer.from('more')]);
  const head = httpResponse(200, '', { 'content-encoding': 'br', 'content-length': String(body.length + 1) });
  world.upstream.on(READ, reply(bytes(Buffer.concat([head, body])), hang()));
  expect(await ask(world)).toMatchObject({ status: 200, text: GOOD });
  await world.upstream.disconnected(world.upstream.calls[0]!);
});

const FOR_LONG = { 'keep-alive': 'timeout=600' };

test.each([
  [READ, ask, 60, FOR_LONG],
  [READ, ask, 4, {}],
  [WRITE, write, 1, FOR_LONG],
  [WRITE, write, 1, {}],
])(
  'after %s a connection ends once nobody may use it, whatever the upstream says',
  async (match, asked, seconds, headers) => {
    const { pass } = libraryClock();
    const world = await openWorld();
    world.upstream.on(match, json(200, GOOD, headers));
    expect((await asked(world)).status).toBe(200);
    pass(seconds * 1000);
    await world.upstream.disconnected(world.upstream.calls[0]!);
  },
);

test('a call under way is not cut when its connection has been used for a minute, and others ask on a new one', async () => {
  const { suspend } = libraryClock();
  const gate = barrier();
  const world = await openWorld();
  world.upstream.on(READ, json(200, GOOD), reply(hold(gate), json(200, GOOD)), json(200, GOOD));
  await ask(world);
  const slow = ask(world);
  await gate.reached;
  suspend(60_001);
  for (let n = 0; n < 2; n++) expect((await ask(world)).status).toBe(200);
  gate.release();
  expect(await slow).toMatchObject({ status: 200, text: GOOD });
  expect(world.upstream.calls.map(({ socket }) => socket)).toEqual([1, 1, 2, 2]);
});

test('after a drain a call opens no connection', async () => {
  const { suspend } = libraryClock();
  const upstream = await startUpstream();
  upstream.on(WRITE, json(201, GOOD));
  const env = { UPSTREAM_BASE_URL: upstream.url, LOG_LEVEL: 'silent' };
  const { app, drain } = portico({ ...fromEnv(env), rows: proxyAccount });
  const headers = { authorization: `Token ${secret()}`, 'content-type': 'application/json' };
  const send = async () => (await app.request('/api/v2/apikey/', { method: 'POST', headers, body: '{}' })).status;
  expect(await send()).toBe(201);
  await drain();
  suspend(1001);
  expect(await send()).toBe(502);
  expect(upstream.calls).toHaveLength(1);
});

test.each([
  ['has passed while the machine was suspended', READ, ask, 60_001],
  ['has passed while the machine was suspended, for writes', WRITE, write, 1001],
  ['is not known, since the clock was set back', READ, ask, -60_001],
])('a connection is used no more where its time %s, and ends then', async (_, match, asked, ms) => {
  const { suspend } = libraryClock();
  const world = await openWorld();
  world.upstream.on(match, json(200, GOOD));
  await asked(world);
  suspend(ms);
  await asked(world);
  expect(world.upstream.calls.map(({ socket }) => socket)).toEqual([1, 2]);
  await world.upstream.disconnected(world.upstream.calls[0]!);
});

test('what arrives byte by byte, interim answers too, is read as what comes at once, on one connection', async () => {
  const world = await openWorld({ UPSTREAM_MAX_CONNECTIONS: '1' });
  const interim = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n';
  const whole = Buffer.concat([Buffer.from(interim), httpResponse(200, '{"a":1}')]);
  world.upstream.on(READ, reply(...Array.from(whole, (byte) => reply(bytes(Buffer.of(byte)), letRead()))));
  for (let n = 0; n < 2; n++) expect(await ask(world)).toMatchObject({ status: 200, text: '{"a":1}' });
  expect(world.upstream.connections()).toBe(1);
});

test('a body in which something looks like an interim answer comes through', async () => {
  const world = await openWorld();
  const text = exampleBody('getSubscription', { note: `HTTP/1.1 100 ${'x'.repeat(20_000)}` });
  const [before = '', after = ''] = httpResponse(200, text).toString().split('HTTP/1.1 100');
  world.upstream.on(READ, reply(bytes(before), letRead(), bytes('HTTP/1.1 100'), letRead(), bytes(after)));
  expect(await ask(world)).toMatchObject({ status: 200, text });
});

/** Where a server listens, until the test is over. */
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
  const upstream = await startUpstream();
  await upstream.close();
  return upstream.url;
}

const byTls = async (server: Server) => `https://127.0.0.1:${await portOf(server)}`;

/** What is wrong where the gateway is to find its upstream, the reason in the log, and what Node calls it. */
const WAYS: readonly (readonly [
  what: string,
  url: () => string | Promise<string>,
  reason: string,
  errno: string | undefined,
])[] = [
  ['a certificate that nobody trusts', () => byTls(createHttps(selfSigned)), 'tls', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['a name without an address', () => 'http://nothing.invalid', 'dns', 'ENOTFOUND'],
  ['a port that refuses', refusing, 'refused', 'ECONNREFUSED'],
  ['TLS at a plain port', () => byTls(createHttp()), 'tls', 'ERR_SSL_WRONG_VERSION_NUMBER'],
  ['plain text at a TLS port that says so', alerting, 'tls', undefined],
];

describe(says('`upstream_unreachable` | 502 | refused, reset, DNS, TLS'), () => {
  test.each(WAYS)('%s', async (_, url, reason, errno) => {
    const isSent = errno === undefined; // the alert is an answer, though none of HTTP
    const code = isSent ? 'upstream_bad_response' : 'upstream_unreachable';
    const gateway = await startGateway(await url());
    onTestFinished(() => gateway.close());
    const token = secret();
    const read = await call(gateway.url, { path: '/api/v2/subscription/', token });
    expectProblem(read, { status: 502, code });
    const written = await call(gateway.url, { path: '/api/v2/apikey/', token, body: {} });
    expect(expectProblem(written, { status: 502, code }).outcome).toBe(isSent ? 'unknown' : undefined);
    const warned = gateway.lines.filter(({ level }) => level === 'warn');
    expect(warned).toMatchObject([{ msg: 'the upstream fails', reason, ...(errno !== undefined && { errno }) }]);
    expect(reasonsIn({ gateway })).toEqual([reason, reason]);
  });
});

/** What comes for one account and is followed by something that looks like an answer for the next. */

const LIST = 'listNotifications';
const POISON = httpResponse(200, { poison: true }).toString();
const MINE = httpResponse(200, bodyOf(LIST, 'mine')).toString();
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n';

const POISONED: Readonly<Record<string, string>> = {
  'an answer with a length': MINE + POISON,
  'an answer in chunks': `${CHUNKED}${chunk(bodyOf(LIST, 'mine'))}0\r\n\r\n${POISON}`,
  'an answer, by half a head': `${MINE}HTTP/1.1 200 OK\r\nX-Swallowed: `,
  'an answer, by two more': MINE + POISON + POISON,
  'an answer, by an interim one': `${MINE}HTTP/1.1 103 Early Hints\r\n\r\n`,
  'an answer, by bytes that are no HTTP': `${MINE}\0\0\0\0`,
  'a 204 without a length': `${NO_CONTENT}\r\n${POISON}`,
  'a 204 with a length': `${NO_CONTENT}Content-Length: ${POISON.length}\r\n\r\n${POISON}`,
  'a 204 in chunks': `${NO_CONTENT}Transfer-Encoding: chunked\r\n\r\n${POISON}`,
};

const openPoisoned = async (first: Step) => {
  const world = await openWorld({ UPSTREAM_MAX_CONNECTIONS: '1' });
  world.upstream.once(callOf(LIST), first, json(200, bodyOf(LIST, 'yours')));
  return world;
};

const expectYours = ({ upstream }: World, { status, text }: TextAnswer) => {
  expect([status, markOf(text)]).toEqual([200, 'yours']);
  const [mine, yours] = upstream.calls;
  expect(yours?.socket).not.toBe(mine?.socket);
};

describe.each(Object.entries(POISONED))('%s and followed by more', (_, sent) => {
  const expectMine = ({ status, text }: TextAnswer) =>
    expect([status, markOf(text)]).toEqual(sent.includes('204') ? [204, undefined] : [200, 'mine']);

  test('leaves nothing for the account that asks next', async () => {
    const world = await openPoisoned(bytes(sent));
    expectMine(await world.ask(LIST));
    expectYours(world, await world.ask(LIST, { token: secret() }));
  });

  test('leaves nothing for the account that was waiting for the connection', async () => {
    const gate = barrier();
    const world = await openPoisoned(reply(hold(gate), bytes(sent)));
    const mine = world.ask(LIST);
    await gate.reached;
    const yours = world.ask(LIST, { token: secret() });
    await world.call({ path: '/livez' }); // the gateway has had its turn
    gate.release();
    expectMine(await mine);
    expectYours(world, await yours);
  });
});

test('what comes over a connection that nobody asked anything on is thrown away with it', async () => {
  const gate = barrier();
  const world = await openPoisoned(reply(bytes(MINE), hold(gate), bytes(POISON)));
  const mine = await world.ask(LIST);
  gate.release();
  await world.upstream.disconnected(world.upstream.calls[0]!);
  expectYours(world, await world.ask(LIST, { token: secret() }));
  expect(await world.ask(LIST)).toMatchObject({ status: 200, text: mine.text }); // from the cache
});
