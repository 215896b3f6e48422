import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request as forward } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, type Server, Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTls, type TLSSocket, type TlsOptions } from 'node:tls';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { proxyTo, settingsIn } from '../../src/entry/node/settings.ts';
import { run } from '../../src/entry/cli/words.ts';
import { firstAuthority as first, ofWrongPurpose, secondAuthority as second } from '../support/authorities.ts';
import { testClock } from '../support/clock.ts';
import { says } from '../support/contract.ts';
import { exampleBody, exampleRequest } from '../support/examples.ts';
import { type Env, startGateway } from '../support/gateway.ts';
import { call, type CallOptions } from '../support/http.ts';
import { libraryClock } from '../support/library-clock.ts';
import { folderWith } from '../support/process.ts';
import { secret } from '../support/secrets.ts';
import { Upstream } from '../support/upstream.ts';

/** The ways to the upstream: its certificates and ours, and proxies. */

const WRITE = exampleRequest('createApiKey');

/** Variables that name files with these texts. */
function filesOf(side: 'UPSTREAM' | 'STORE', texts: Record<string, string>): Env {
  const folder = folderWith(texts);
  return Object.fromEntries(
    Object.keys(texts).map((kind) => [`${side}_${kind.toUpperCase()}_FILE`, join(folder, kind)]),
  );
}

async function listenUntilEnd(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    if ('closeAllConnections' in server) (server.closeAllConnections as () => void)();
    await closed;
  });
  return (server.address() as { port: number }).port;
}

/** One with TLS that gives a good answer to all. */
async function startTlsUpstream(options: TlsOptions = first.server) {
  const calls: { readonly shown: unknown; readonly servername: unknown; readonly headers: object }[] = [];
  const server = createHttps(options, ({ socket, method, headers }, response) => {
    const { servername } = socket as TLSSocket;
    calls.push({ shown: (socket as TLSSocket).getPeerCertificate().subject?.CN, servername, headers });
    const isRead = method === 'GET';
    response.writeHead(isRead ? 200 : 201, { 'content-type': 'application/json' });
    response.end(exampleBody(isRead ? 'getSubscription' : 'createApiKey'));
  });
  let connections = 0;
  server.on('secureConnection', () => connections++);
  const port = await listenUntilEnd(server);
  return { url: `https://127.0.0.1:${port}`, port, calls, connections: () => connections };
}

/** A gateway in this process that reaches its upstream as these variables say. */
async function openTo(url: string, env: Env = {}) {
  const read = settingsIn(env);
  const settings = 'data' in read ? read.data : expect.fail(JSON.stringify(read.problems));
  const way = { tls: settings.upstreamTls, ...proxyTo(new URL(url), settings) };
  const clock = testClock();
  const gateway = await startGateway(url, { env, way, clock });
  onTestFinished(() => gateway.close());
  return {
    clock,
    ask: (options: Partial<CallOptions> = {}) =>
      call(gateway.url, { ...exampleRequest('getSubscription'), token: secret(), ...options }),
    reasons: () => gateway.lines.filter(({ msg }) => msg === 'request').map(({ reason }) => reason),
  };
}

const MUTUAL = { ...first.server, ca: first.ca, requestCert: true, rejectUnauthorized: true };

test(`PEM: ${says('whom to trust beside the usual authorities, and what to show')}`, async () => {
  const upstream = await startTlsUpstream(MUTUAL);
  const shows = await openTo(upstream.url, filesOf('UPSTREAM', { ca: second.ca + first.ca, ...first.client }));
  expect((await shows.ask()).status).toBe(200);
  expect((await shows.ask(WRITE)).status).toBe(201);
  expect(upstream.calls.map(({ shown }) => shown)).toEqual(['first client', 'first client']);
  const hides = await openTo(upstream.url, filesOf('UPSTREAM', { ca: first.ca }));
  expect((await hides.ask()).status).toBe(502);
  expect(upstream.calls).toHaveLength(2);
});

test('a host with a dot at its end is a name without it in TLS', async () => {
  const upstream = await startTlsUpstream();
  const addresses = [{ address: '127.0.0.1', family: 4 }];
  vi.spyOn(dns, 'lookup').mockImplementation(((_: string, __: object, done: (...args: unknown[]) => void) =>
    done(null, addresses)) as typeof dns.lookup);
  onTestFinished(() => void vi.restoreAllMocks());
  const dotted = await openTo(upstream.url.replace('127.0.0.1', 'localhost.'), filesOf('UPSTREAM', { ca: first.ca }));
  expect([(await dotted.ask()).status, upstream.calls[0]?.servername]).toEqual([200, 'localhost']);
});

test.each([
  ['the authority of a server', first.server, first.ca, 200],
  ['a server’s own certificate', first.server, first.server.cert, 200],
  ['another authority', first.server, second.ca, 502],
  ['none', first.server, undefined, 502],
  ['a certificate for another purpose', ofWrongPurpose, ofWrongPurpose.cert, 502],
])('trusted is %s or not', async (_, server, ca, status) => {
  const upstream = await startTlsUpstream(server);
  const { ask, reasons } = await openTo(upstream.url, ca === undefined ? {} : filesOf('UPSTREAM', { ca }));
  expect((await ask()).status).toBe(status);
  expect(reasons()).toEqual([status === 200 ? undefined : 'tls']);
});

const BY_NAME = ['first client', 'localhost'];

test.each([
  ['rediss://localhost:PORT/1', [BY_NAME]],
  ['rediss-sentinel://127.0.0.1:PORT/main/1', [['first client', false], BY_NAME]],
])(`${says('the same with `STORE_`')}: %s`, async (form, expected) => {
  const came: unknown[] = [];
  const primary = (): string => `*2\r\n$9\r\nlocalhost\r\n$${String(port).length}\r\n${port}\r\n-ERR\r\n`;
  const server = createTls(MUTUAL, (socket: TLSSocket) => {
    came.push([socket.getPeerCertificate().subject.CN, socket.servername]);
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(expected.length > came.length ? primary() : '-ERR no more\r\n'));
  });
  const port = await listenUntilEnd(server);
  const files = filesOf('STORE', { ca: first.ca, ...first.client });
  const env = { ...files, STORE_URL: form.replace('PORT', String(port)), SECRETS: secret('of-a-store-with-tls') };
  await run(['doctor'], env, { out: () => {}, err: () => {} });
  expect(came).toEqual(expected);
});

/** Undefined: lets it through. */
type Rule = (request: IncomingMessage, socket: Socket) => 'handled' | undefined;

/** A proxy that notes what it is asked. */
async function startProxy(rule: Rule = () => undefined, tls?: TlsOptions) {
  const asked: { readonly target: string; readonly headers: IncomingMessage['headers'] }[] = [];
  const met = Promise.withResolvers<void>();
  const note = ({ method, url, headers }: IncomingMessage) => {
    asked.push({ target: `${method} ${url}`, headers });
    met.resolve();
  };
  const pass: RequestListener = (request, response) => {
    note(request);
    if (rule(request, request.socket)) return;
    const { method = '', url = '', headers } = request;
    const onward = forward(url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  };
  const open = new Set<Socket>();
  const server = tls ? createHttps(tls, pass) : createServer(pass);
  let connections = 0;
  server.on(tls ? 'secureConnection' : 'connection', () => connections++);
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    note(request);
    open.add(socket.on('error', () => undefined));
    if (rule(request, socket)) return;
    const { hostname, port } = new URL(`http://${request.url}`);
    const onward = connect(Number(port), hostname, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.on('error', () => socket.destroy());
    socket.pipe(onward).pipe(socket);
  });
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${await listenUntilEnd(server)}`;
  onTestFinished(() => open.forEach((socket) => socket.destroy()));
  const targets = () => asked.map(({ target }) => target);
  return { url, asked, met: met.promise, connections: () => connections, targets };
}

const doing =
  (act: (socket: Socket) => unknown): Rule =>
  (_, socket) => {
    act(socket);
    return 'handled';
  };

async function plainUpstream() {
  const upstream = new Upstream();
  const listening = await upstream.listen();
  onTestFinished(() => listening.close());
  return { url: listening.url, calls: upstream.calls };
}

const trusting: Env = filesOf('UPSTREAM', { ca: first.ca });

describe(says('`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`'), () => {
  test('an upstream with TLS is reached through a tunnel, which is kept and whose maker sees nothing', async () => {
    const [upstream, proxy] = [await startTlsUpstream(), await startProxy()];
    const { ask } = await openTo(upstream.url, { ...trusting, https_proxy: proxy.url });
    for (let times = 0; times < 2; times++) expect((await ask()).status).toBe(200);
    expect(proxy.targets()).toEqual([`CONNECT 127.0.0.1:${upstream.port}`]);
    expect(proxy.asked[0]?.headers).not.toHaveProperty('authorization');
    expect(upstream.calls[0]?.headers).toMatchObject({ host: `127.0.0.1:${upstream.port}` });
    expect(upstream.calls[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test('through a tunnel too an upstream is trusted by its authority, and shown our certificate; the proxy is not', async () => {
    const wanting = { ...first.server, ca: first.ca, requestCert: true };
    const upstream = await startTlsUpstream(wanting);
    const shown: unknown[] = [];
    const look: Rule = (_, socket) => void shown.push((socket as TLSSocket).getPeerCertificate());
    const proxy = await startProxy(look, { ...wanting, rejectUnauthorized: false });
    const files = filesOf('UPSTREAM', { ca: first.ca, ...first.client });
    expect((await (await openTo(upstream.url, { ...files, HTTPS_PROXY: proxy.url })).ask()).status).toBe(200);
    expect([upstream.calls.map((one) => one.shown), shown]).toEqual([['first client'], [{}]]);
    const distrusting = await openTo(upstream.url, { HTTPS_PROXY: (await startProxy()).url });
    expect((await distrusting.ask()).json).toMatchObject({ code: 'upstream_unreachable' });
    expect(distrusting.reasons()).toEqual(['tls']);
  });

  test('an upstream without TLS is asked for at the proxy, which is told who we are', async () => {
    const [upstream, proxy] = [await plainUpstream(), await startProxy()];
    const HTTP_PROXY = proxy.url.replace('//', '//us:p%40ss@');
    expect((await (await openTo(upstream.url, { HTTP_PROXY })).ask()).status).toBe(200);
    const [{ target, headers }] = proxy.asked as [(typeof proxy.asked)[0]];
    expect(target).toBe(`GET ${upstream.url}/api/v2/subscription/`);
    expect(headers['proxy-authorization']).toBe(`Basic ${Buffer.from('us:p@ss').toString('base64')}`);
    expect(headers).toMatchObject({ host: new URL(upstream.url).host, via: expect.stringMatching(/^1\.1 portico-/) });
  });

  test.each(['127.0.0.1', 'localhost, 127.0.0.0/8', '*'])(
    `${says('`NO_PROXY` takes `*`, hosts, `.suffixes`, addresses and CIDRs, each with or without a port')}: %s`,
    async (NO_PROXY) => {
      const [upstream, proxy] = [await plainUpstream(), await startProxy()];
      const { ask } = await openTo(upstream.url, { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url, NO_PROXY });
      expect([(await ask()).status, proxy.asked]).toEqual([200, []]);
    },
  );
});

/** Straight, through a tunnel and at a proxy, each with how many connections were made on it. */
async function openRoutes() {
  const [one, other, plain] = [await startTlsUpstream(), await startTlsUpstream(), await plainUpstream()];
  const [tunnel, proxy] = [await startProxy(), await startProxy()];
  return [
    { ...(await openTo(one.url, trusting)), connections: one.connections },
    { ...(await openTo(other.url, { ...trusting, HTTPS_PROXY: tunnel.url })), connections: other.connections },
    { ...(await openTo(plain.url, { HTTP_PROXY: proxy.url })), connections: proxy.connections },
  ];
}

const READ = exampleRequest('getSubscription');

test.each([
  [says('a connection to the upstream is used for a minute at most'), [READ], 60_000],
  [says('a write goes out on one that is new or was used within the last second'), [WRITE, READ], 1000],
] as const)('%s', async (_, [asked, ...others], mostMs) => {
  const { suspend } = libraryClock();
  for (const { ask, connections } of await openRoutes()) {
    for (const other of others) expect((await ask(other)).status).toBe(200);
    const before = connections();
    const made: number[] = [];
    for (const ms of [0, mostMs / 2, mostMs / 2, 1]) {
      suspend(ms);
      expect((await ask(asked)).status).toBeLessThan(300);
      made.push(connections() - before);
    }
    expect(made).toEqual([1, 1, 1, 2]);
  }
});

test('of several addresses one that is far away has a quarter of the time, and not the 250 ms of Node', async () => {
  const connects = vi.spyOn(Socket.prototype, 'connect');
  onTestFinished(() => connects.mockRestore());
  for (const { ask } of await openRoutes()) {
    connects.mockClear();
    expect((await ask()).status).toBe(200);
    const options = expect.objectContaining({ autoSelectFamilyAttemptTimeout: 1250 });
    expect(connects.mock.calls.flat(2)).toContainEqual(options);
  }
});

test('an upstream without TLS is not asked for at a proxy whose certificate names another host', async () => {
  const [upstream, proxy] = [await plainUpstream(), await startProxy(() => undefined, first.server)];
  const HTTP_PROXY = proxy.url.replace('127.0.0.1', '0.0.0.0');
  const { ask, reasons } = await openTo(upstream.url, { ...trusting, HTTP_PROXY });
  expect((await ask(WRITE)).json).not.toHaveProperty('outcome');
  expect([proxy.asked, reasons()]).toEqual([[], ['tls']]);
});

test('after a 407 whose body has no end the upstream is reached again: that connection is not kept', async () => {
  let isRefused = true;
  const unending = doing((socket) => socket.write('HTTP/1.1 407 No\r\nContent-Length: 100\r\n\r\nno'));
  const upstream = await plainUpstream();
  const proxy = await startProxy((...given) => (isRefused ? unending(...given) : undefined));
  const { ask } = await openTo(upstream.url, { HTTP_PROXY: proxy.url, UPSTREAM_MAX_CONNECTIONS: '1' });
  expect((await ask(WRITE)).json).toMatchObject({ code: 'upstream_unreachable' });
  isRefused = false;
  expect((await ask()).status).toBe(200);
  expect(upstream.calls).toHaveLength(1);
});

/** No resolver has to be asked about a name that long. */
const NO_NAME = `${'a'.repeat(64)}.invalid`;

const proxyThat = async (rule: Rule, tls?: TlsOptions) => (await startProxy(rule, tls)).url;

/** Each with the reason that the log has. */
const FAILING: Readonly<Record<string, readonly [reason: string, proxy: () => Promise<string>]>> = {
  'wants a login': [
    'refused',
    () => proxyThat(doing((socket) => socket.end('HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n'))),
  ],
  'hangs up': ['reset', () => proxyThat(doing((socket) => socket.destroy()))],
  'speaks no HTTP': ['reset', () => proxyThat(doing((socket) => socket.end('hello\r\n\r\n')))],
  'is not there': ['refused', async () => 'http://127.0.0.1:1'],
  'has no address': ['dns', async () => `http://${NO_NAME}:3128`],
  'has a certificate that nobody trusts': ['tls', () => proxyThat(() => undefined, second.server)],
};

test.each(Object.entries(FAILING))(
  'a proxy that %s is what fails, for reads and for writes, of which none has happened',
  async (_, [reason, proxy]) => {
    const upstream = await startTlsUpstream();
    const { ask, reasons } = await openTo(upstream.url, { ...trusting, HTTPS_PROXY: await proxy() });
    expect(await ask()).toMatchObject({ status: 502, json: { code: 'upstream_unreachable' } });
    const keyed = { ...WRITE, token: secret(), headers: { 'Idempotency-Key': 'once' } };
    for (let times = 0; times < 2; times++) expect((await ask(keyed)).json).not.toHaveProperty('outcome');
    expect([upstream.connections(), reasons()]).toEqual([0, [reason, reason, reason]]);
  },
);

test('a proxy that says nothing is what fails when the time is over, and the write has not happened', async () => {
  const upstream = await startTlsUpstream();
  const proxy = await startProxy(() => 'handled');
  const { ask, clock, reasons } = await openTo(upstream.url, { ...trusting, HTTPS_PROXY: proxy.url });
  const write = ask(WRITE);
  await proxy.met;
  await clock.pass(5);
  const { status, json } = await write;
  expect([status, json]).toMatchObject([504, { code: 'upstream_timeout' }]);
  expect(json).not.toHaveProperty('outcome');
  expect([upstream.connections(), reasons()]).toEqual([0, ['timeout']]);
});
