import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request as forward } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { json, perCall, startUpstream } from '../support/scripted-upstream.ts';
import { freePort, listenLocally } from '../support/ports.ts';
import { firstAuthority as first, secondAuthority as second } from '../support/authorities.ts';
import { goodAnswer } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { expectProblem } from '../http/problem.ts';
import { openGateway, startTlsUpstream, WRITE } from './helpers.ts';

/** Undefined: lets it through. */
type Rule = (request: IncomingMessage, socket: Socket) => 'handled' | undefined;

/** A proxy that notes what it is asked. */
async function startProxy(rule: Rule = () => undefined, tls?: TlsOptions) {
  const asked: { readonly target: string; readonly headers: IncomingMessage['headers'] }[] = [];
  const open = new Set<Socket>();
  const note = ({ method, url, headers }: IncomingMessage) => asked.push({ target: `${method} ${url}`, headers });
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
  const server = tls ? createTlsServer(tls, pass) : createServer(pass);
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    note(request);
    socket.on('error', () => undefined);
    if (rule(request, socket)) return;
    const { hostname, port } = new URL(`http://${request.url}`);
    const onward = connect(Number(port), hostname, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.on('error', () => socket.destroy());
    socket.pipe(onward).pipe(socket);
  });
  server.on('connection', (socket: Socket) => open.add(socket.on('close', () => open.delete(socket))));
  const port = await listenLocally(server);
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of open) socket.destroy();
    await closed;
  });
  const scheme = tls ? 'https' : 'http';
  return { url: `${scheme}://127.0.0.1:${port}`, asked, targets: () => asked.map(({ target }) => target) };
}

const refusing =
  (status: number): Rule =>
  (_, socket) => {
    socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`);
    return 'handled';
  };

async function plainUpstream() {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, 1)),
  );
  return upstream;
}

const texts = { ca: first.ca };

describe('an upstream with TLS', () => {
  test('is reached through a tunnel, which is kept and whose maker sees nothing of what goes through', async () => {
    const [upstream, proxy] = [await startTlsUpstream(), await startProxy()];
    const { ask } = await openGateway(upstream.url, { proxy: proxy.url, texts });
    for (let times = 0; times < 3; times++) expect((await ask()).status).toBe(200);
    expect((await ask(WRITE)).status).toBe(201);
    expect(proxy.targets()).toEqual([`CONNECT 127.0.0.1:${upstream.port}`]);
    expect(proxy.asked[0]?.headers).not.toHaveProperty('authorization');
    expect(upstream.calls).toHaveLength(4);
    expect(upstream.calls[0]?.headers).toMatchObject({ host: `127.0.0.1:${upstream.port}` });
    expect(upstream.calls[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test('has no more tunnels than it may have connections', async () => {
    const [upstream, proxy] = [await startTlsUpstream(), await startProxy()];
    const env = { UPSTREAM_MAX_CONNECTIONS: '2' };
    const { ask } = await openGateway(upstream.url, { proxy: proxy.url, texts, env });
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask()));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(proxy.asked.length).toBeLessThanOrEqual(2);
  });

  test('is not trusted through a tunnel either without its authority', async () => {
    const [upstream, proxy] = [await startTlsUpstream(), await startProxy()];
    const { ask, reasons } = await openGateway(upstream.url, { proxy: proxy.url });
    expectProblem(await ask(), { status: 502, code: 'upstream_unreachable' });
    expect(reasons()).toEqual(['tls']);
  });

  test('is shown its certificate through the tunnel, and the proxy is not', async () => {
    const wanting = { ...first.server, ca: first.ca, requestCert: true };
    const upstream = await startTlsUpstream(wanting);
    const shown: unknown[] = [];
    const proxy = await startProxy(
      (_, socket) => {
        shown.push((socket as unknown as { getPeerCertificate(): object }).getPeerCertificate());
        return undefined;
      },
      { ...wanting, rejectUnauthorized: false },
    );
    const { ask } = await openGateway(upstream.url, { proxy: proxy.url, texts: { ...texts, ...first.client } });
    expect((await ask()).status).toBe(200);
    expect(upstream.calls.map((call) => call.shown)).toEqual(['first client']);
    expect(shown).toEqual([{}]);
  });
});

describe('an upstream without TLS', () => {
  test('is asked for at the proxy, which is told who we are and whose answers are the upstream’s', async () => {
    const [upstream, proxy] = [await plainUpstream(), await startProxy()];
    const at = new URL(proxy.url);
    at.username = 'us';
    at.password = encodeURIComponent('p@ss');
    const { ask } = await openGateway(`${upstream.url}/base`, { proxy: at.href });
    upstream.on(() => true, json(200, '{}'));
    expect((await ask()).status).toBe(200);
    const [{ target, headers }] = proxy.asked as [(typeof proxy.asked)[0]];
    expect(target).toBe(`GET ${upstream.url}/base/api/v2/subscription/`);
    expect(headers['proxy-authorization']).toBe(`Basic ${Buffer.from('us:p@ss').toString('base64')}`);
    expect(headers).toMatchObject({ host: new URL(upstream.url).host, via: expect.stringMatching(/^1\.1 portico-/) });
  });

  test('has done nothing where the proxy wants another login', async () => {
    const [upstream, proxy] = [await plainUpstream(), await startProxy(refusing(407))];
    const { ask, reasons } = await openGateway(upstream.url, { proxy: proxy.url });
    const { outcome } = expectProblem(await ask(WRITE), { status: 502, code: 'upstream_unreachable' });
    expect([outcome, upstream.calls.length]).toEqual([undefined, 0]);
    expect(reasons()).toEqual(['refused']);
  });

  test('is not asked for at a proxy whose certificate names another host', async () => {
    const [upstream, proxy] = [await plainUpstream(), await startProxy(() => undefined, first.server)];
    const at = proxy.url.replace('127.0.0.1', '0.0.0.0');
    const { ask, reasons } = await openGateway(upstream.url, { proxy: at, texts });
    const { outcome } = expectProblem(await ask(WRITE), { status: 502, code: 'upstream_unreachable' });
    expect([outcome, proxy.asked]).toEqual([undefined, []]);
    expect(reasons()).toEqual(['tls']);
  });

  test('is reached again after a 407 whose body has no end: that connection is not kept', async () => {
    let isRefused = true;
    const [upstream, proxy] = [
      await plainUpstream(),
      await startProxy((_, socket) => {
        if (!isRefused) return undefined;
        socket.write('HTTP/1.1 407 No\r\nContent-Length: 100\r\n\r\nno');
        return 'handled';
      }),
    ];
    const { ask } = await openGateway(upstream.url, { proxy: proxy.url, env: { UPSTREAM_MAX_CONNECTIONS: '1' } });
    expectProblem(await ask(WRITE), { status: 502, code: 'upstream_unreachable' });
    isRefused = false;
    expect((await ask()).status).toBe(200);
    expect(upstream.calls).toHaveLength(1);
  });
});

test.each(['127.0.0.1', 'localhost, 127.0.0.1', '*'])('what NO_PROXY names is reached without: %s', async (noProxy) => {
  const [upstream, proxy] = [await plainUpstream(), await startProxy()];
  const { ask } = await openGateway(upstream.url, { proxy: proxy.url, noProxy });
  expect((await ask()).status).toBe(200);
  expect(proxy.asked).toEqual([]);
});

const proxyThat = async (rule: Rule, tls?: TlsOptions) => (await startProxy(rule, tls)).url;

const doing =
  (act: (socket: Socket) => unknown): Rule =>
  (_, socket) => {
    act(socket);
    return 'handled';
  };

/** Each with the reason that the log has. */
const FAILING: Readonly<Record<string, readonly [reason: string, proxy: () => Promise<string>]>> = {
  'wants a login': ['refused', () => proxyThat(refusing(407))],
  'does not let it through': ['refused', () => proxyThat(refusing(403))],
  'does not find it': ['refused', () => proxyThat(refusing(502))],
  'hangs up': ['reset', () => proxyThat(doing((socket) => socket.destroy()))],
  'speaks no HTTP': ['reset', () => proxyThat(doing((socket) => socket.end('hello\r\n\r\n')))],
  'answers with too little': ['reset', () => proxyThat(doing((socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n')))],
  'breaks off in the middle of its answer': [
    'reset',
    () => proxyThat(doing((socket) => socket.write('HTTP/1.1 200 OK\r\nX: y', () => socket.resetAndDestroy()))),
  ],
  'breaks off before its answer': ['reset', () => proxyThat(doing((socket) => socket.resetAndDestroy()))],
  'is not there': ['refused', async () => `http://127.0.0.1:${await freePort()}`],
  'has no address': ['dns', async () => 'http://nothing.invalid:3128'],
  'has a certificate that nobody trusts': ['tls', () => proxyThat(() => undefined, second.server)],
  'says nothing': ['timeout', () => proxyThat(() => 'handled')],
};

test.each(Object.entries(FAILING))(
  'a proxy that %s is what fails, for reads and for writes, of which none has happened',
  async (_, [reason, proxy]) => {
    const upstream = await startTlsUpstream();
    const isLate = reason === 'timeout';
    const env = { UPSTREAM_TIMEOUT_MS: isLate ? '300' : '5000' };
    const { ask, reasons } = await openGateway(upstream.url, { proxy: await proxy(), texts, env });
    const problem = isLate ? { status: 504, code: 'upstream_timeout' } : { status: 502, code: 'upstream_unreachable' };
    expectProblem(await ask(), problem);
    const keyed = { ...WRITE, token: secret(), headers: { 'Idempotency-Key': 'once' } };
    for (let times = 0; times < 2; times++) expect(expectProblem(await ask(keyed), problem).outcome).toBeUndefined();
    expect(upstream.connections()).toBe(0);
    expect(reasons()).toEqual([reason, reason, reason]);
  },
);
