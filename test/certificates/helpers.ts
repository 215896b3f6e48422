import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { expect, onTestFinished } from 'vitest';
import { readTls, type Tls } from '../../src/entry/node/certificates.ts';
import type { Way } from '../../src/entry/node/way.ts';
import { listenLocally } from '../support/ports.ts';
import { firstAuthority } from '../support/authorities.ts';
import { startGateway } from '../support/gateway.ts';
import { call, type CallOptions } from '../support/http.ts';
import { bodyOf, pathOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';

const READ = pathOf('getSubscription');
export const WRITE = { method: 'POST', path: pathOf('createApiKey'), body: { label: 'one' } };

interface Texts {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Variables that name files with these texts. */
export function variablesOf(side: 'UPSTREAM' | 'STORE', texts: Texts): Readonly<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const entries = Object.entries(texts as Record<string, string>).map(([kind, text]) => {
    writeFileSync(join(folder, kind), text);
    return [`${side}_${kind.toUpperCase()}_FILE`, join(folder, kind)] as const;
  });
  return Object.fromEntries(entries);
}

export function tlsOf(side: 'UPSTREAM' | 'STORE', texts: Texts): Tls {
  const read = readTls(side, variablesOf(side, texts));
  return 'data' in read ? read.data : expect.fail(JSON.stringify(read.problems));
}

/** One with TLS that gives a good answer to all. */
export async function startTlsUpstream(options: TlsOptions = firstAuthority.server) {
  const calls: { readonly url: string; readonly shown: string | undefined; readonly headers: object }[] = [];
  const server = createServer(options, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    calls.push({ url: request.url ?? '', shown: subject?.CN as string | undefined, headers: request.headers });
    const isRead = request.method === 'GET';
    const body = bodyOf(isRead ? 'getSubscription' : 'createApiKey', calls.length);
    response.writeHead(isRead ? 200 : 201, { 'content-type': 'application/json' }).end(body);
  });
  let connections = 0;
  server.on('secureConnection', () => connections++);
  const port = await listenLocally(server);
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return { url: `https://127.0.0.1:${port}`, port, calls, connections: () => connections };
}

interface Opening {
  readonly texts?: Texts;
  readonly proxy?: string;
  readonly noProxy?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A gateway in this process. */
export async function openGateway(url: string, { texts = {}, proxy, noProxy = '', env = {} }: Opening = {}) {
  const way: Way = {
    tls: tlsOf('UPSTREAM', texts),
    proxy: proxy === undefined ? undefined : new URL(proxy),
    noProxy,
  };
  const gateway = await startGateway(url, { env: { RATE_LIMIT_PER_MINUTE: '0', ...env }, way });
  onTestFinished(() => gateway.close());
  return {
    ask: (options: Partial<CallOptions> = {}) => call(gateway.url, { path: READ, token: secret(), ...options }),
    reasons: () => gateway.lines.filter(({ msg }) => msg === 'request').map(({ reason }) => reason),
  };
}
