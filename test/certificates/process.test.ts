import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { createServer } from 'node:net';
import { freePort, listenLocally } from '../support/ports.ts';
import { killAll, run, startNode } from '../runtime/node-gateway.ts';
import { firstAuthority as first, secondAuthority as second } from '../support/authorities.ts';
import { call } from '../support/http.ts';
import { pathOf } from '../support/marked.ts';
import { hasRedis, SKIPPED, startRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { startTlsUpstream, variablesOf } from './helpers.ts';

const READ = pathOf('getSubscription');
const ask = ({ url }: { readonly url: string }) => call(url, { path: READ, token: secret() });

afterEach(killAll);

const SOON = { timeout: 60_000, interval: 100 };
const ALL = { ca: first.ca, ...first.client };

it('an upstream with certificates on both sides is reached', async () => {
  const upstream = await startTlsUpstream({
    ...first.server,
    requestCert: true,
    rejectUnauthorized: true,
    ca: first.ca,
  });
  const env = { UPSTREAM_BASE_URL: upstream.url, ADMIN_PORT: '0', ...variablesOf('UPSTREAM', ALL) };
  expect((await ask(await startNode(env))).status).toBe(200);
  expect(upstream.calls.map(({ shown }) => shown)).toEqual(['first client']);
});

it('HTTPS_PROXY is asked for an upstream, by its name in small letters, and never for the sandbox', async () => {
  const heads: string[] = [];
  const proxy = createServer((socket) => {
    socket.on('data', (chunk) => {
      heads.push(chunk.toString('latin1').split('\r\n')[0] ?? '');
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    });
  });
  const url = `http://127.0.0.1:${await listenLocally(proxy)}`;
  onTestFinished(() => void proxy.close());
  const proxies = { http_proxy: url, https_proxy: url };
  const env = { UPSTREAM_BASE_URL: 'https://upstream.example', ADMIN_PORT: '0', ...proxies };
  const gateway = await startNode(env);
  expect((await ask(gateway)).status).toBe(502);
  expect(new Set(heads)).toEqual(new Set(['CONNECT upstream.example:443 HTTP/1.1']));
  heads.length = 0;
  const trial = await startNode({ ADMIN_PORT: '0', SANDBOX_PORT: '0', HTTP_PROXY: url });
  expect((await call(trial.url, { path: READ, token: 'sandbox-paid-key' })).status).toBe(200);
  expect(heads).toEqual([]);
});

it('bad files end the start with 78, all of them named, without what is in them', async () => {
  const env = {
    UPSTREAM_BASE_URL: 'https://upstream.example',
    PORT: 'x',
    HTTPS_PROXY: `ftp://us:${secret('proxy')}@proxy.example`,
    ...variablesOf('UPSTREAM', { ca: 'nothing of use' }),
    ...variablesOf('STORE', { cert: second.client.cert, key: first.client.key }),
  };
  const gateway = run({ env });
  expect(await gateway.exited).toBe(78);
  const lines = gateway.stderr().trim().split('\n');
  expect(lines.map((line) => line.split(':')[0] ?? '').toSorted()).toEqual([
    'HTTPS_PROXY',
    'PORT',
    'STORE_KEY_FILE',
    'UPSTREAM_CA_FILE',
  ]);
  expect(gateway.stderr()).not.toMatch(/nothing of use|BEGIN|us:/);
});

it.skipIf(!hasRedis)(`a store with TLS that wants a certificate is used${SKIPPED}`, async () => {
  const server = variablesOf('STORE', { ca: first.ca, ...first.server });
  const tlsPort = await freePort();
  const redis = await startRedis({
    'tls-port': String(tlsPort),
    'tls-cert-file': server['STORE_CERT_FILE']!,
    'tls-key-file': server['STORE_KEY_FILE']!,
    'tls-ca-cert-file': server['STORE_CA_FILE']!,
    'tls-auth-clients': 'yes',
  });
  onTestFinished(() => redis.close());
  const gateway = await startNode({
    UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
    STORE_URL: `rediss://127.0.0.1:${tlsPort}`,
    SECRETS: secret('of-the-store-with-tls'),
    ...variablesOf('STORE', ALL),
  });
  await vi.waitFor(async () => {
    const { text } = await call(gateway.adminUrl, { path: '/metrics' });
    expect(text).toMatch(/^portico_store_up 1$/m);
  }, SOON);
});
