import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createServer } from 'node:net';
import { freePort, listenLocally } from '../support/ports.ts';
import { killAll, run, startNode } from '../runtime/node-gateway.ts';
import { firstAuthority as first, secondAuthority as second } from '../support/authorities.ts';
import { call } from '../support/http.ts';
import { pathOf } from '../support/marked.ts';
import { hasRedis, SKIPPED, startRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { folderWith, startTlsUpstream } from './helpers.ts';

const READ = pathOf('getSubscription');
const ask = ({ url }: { readonly url: string }) => call(url, { path: READ, token: secret() });

afterEach(killAll);

/** Longer than it takes until changed files are looked at. */
const SOON = { timeout: 60_000, interval: 100 };
const ALL = { ca: first.ca, cert: first.client.cert, key: first.client.key };

function variablesOf(side: string, { ca, cert, key }: Readonly<Record<'ca' | 'cert' | 'key', string>>) {
  return { [`${side}_CA_FILE`]: ca, [`${side}_CERT_FILE`]: cert, [`${side}_KEY_FILE`]: key };
}

it('an upstream with certificates on both sides is reached, with new files without a restart', async () => {
  const mutual = { requestCert: true, rejectUnauthorized: true, ca: first.ca + second.ca };
  const upstream = await startTlsUpstream({ ...first.server, ...mutual });
  const { files, swap } = folderWith(ALL);
  const gateway = await startNode({
    UPSTREAM_BASE_URL: upstream.url,
    ADMIN_PORT: '0',
    ...variablesOf('UPSTREAM', files),
  });
  expect((await ask(gateway)).status).toBe(200);
  upstream.server.setSecureContext({ ...second.server, ca: mutual.ca });
  swap({ ca: second.ca, cert: second.client.cert, key: second.client.key });
  await gateway.until(() => gateway.records().find(({ msg }) => msg.includes('UPSTREAM_…_FILE have changed')));
  expect((await ask(gateway)).status).toBe(200);
  expect(upstream.calls.map(({ shown }) => shown)).toEqual(['first client', 'second client']);
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
  const { files, write } = folderWith(ALL);
  write('cert', second.client.cert);
  write('ca', 'nothing of use');
  const env = {
    UPSTREAM_BASE_URL: 'https://upstream.example',
    PORT: 'x',
    UPSTREAM_CA_FILE: files.ca,
    ...variablesOf('STORE', files),
  };
  const gateway = run({
    env: { ...env, STORE_CA_FILE: '/nothing.pem', HTTPS_PROXY: `ftp://us:${secret('proxy')}@proxy.example` },
  });
  expect(await gateway.exited).toBe(78);
  const lines = gateway.stderr().trim().split('\n');
  expect(lines.map((line) => line.split(':')[0] ?? '').toSorted()).toEqual([
    'HTTPS_PROXY',
    'PORT',
    'STORE_CA_FILE',
    'STORE_URL',
    'UPSTREAM_CA_FILE',
  ]);
  expect(gateway.stderr()).not.toMatch(/nothing of use|BEGIN|us:/);
});

describe.skipIf(!hasRedis)(`a store with TLS${SKIPPED}`, () => {
  it('wants a certificate, trusts ours, and is reached again with new files', async () => {
    const server = folderWith({ ca: first.ca + second.ca, cert: first.server.cert, key: first.server.key });
    const tlsPort = await freePort();
    const redis = await startRedis({
      'tls-port': String(tlsPort),
      'tls-cert-file': server.files.cert,
      'tls-key-file': server.files.key,
      'tls-ca-cert-file': server.files.ca,
      'tls-auth-clients': 'yes',
    });
    onTestFinished(() => redis.close());
    const { files, swap } = folderWith(ALL);
    const gateway = await startNode({
      UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
      STORE_URL: `rediss://127.0.0.1:${tlsPort}`,
      SECRETS: secret('of-the-store-with-tls'),
      ...variablesOf('STORE', files),
    });
    const isUp = async () => {
      const { text } = await call(gateway.adminUrl, { path: '/metrics' });
      expect(text).toMatch(/^portico_store_up 1$/m);
    };
    await vi.waitFor(isUp, SOON);
    // From now on it does not let in the gateway of before, which would not trust it either.
    await redis.client.config('SET', 'tls-ca-cert-file', folderWith({ ca: second.ca }).files.ca);
    server.swap({ ca: second.ca, cert: second.server.cert, key: second.server.key });
    await redis.client.config('SET', 'tls-cert-file', server.files.cert);
    await redis.client.config('SET', 'tls-key-file', server.files.key);
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await gateway.until(() => gateway.records().find(({ msg }) => msg === 'the store does not answer'));
    swap({ ca: second.ca, cert: second.client.cert, key: second.client.key });
    await gateway.until(() => gateway.records().find(({ msg }) => msg === 'the store answers again'));
    await vi.waitFor(isUp, SOON);
  });
});
