import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';
import { type TlsFiles, WatchedTls } from '../../src/entry/node/certificates.ts';
import type { Way } from '../../src/entry/node/way.ts';
import { listenLocally } from '../support/ports.ts';
import { firstAuthority } from '../support/authorities.ts';
import { keepingLogger, type LogLine, startGateway } from '../support/gateway.ts';
import { call, type CallOptions } from '../support/http.ts';
import { bodyOf, pathOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';

const READ = pathOf('getSubscription');
export const WRITE = { method: 'POST', path: pathOf('createApiKey'), body: { label: 'one' } };

export type AtEnd = (close: () => void | Promise<void>) => void;

type Texts = Readonly<Record<string, string>>;

/**
 * A folder with these files, by their names, in the place of which others can be put at once: it is a link to another one, as
 * Kubernetes has it.
 */
export function folderWith(texts: Texts, atEnd: AtEnd = onTestFinished) {
  const folder = mkdtempSync(join(tmpdir(), 'portico-tls-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const now = join(folder, 'now');
  let count = 0;
  const swap = (others: Texts) => {
    const name = `data-${count++}`;
    mkdirSync(join(folder, name));
    for (const [file, text] of Object.entries(others)) writeFileSync(join(folder, name, file), text);
    symlinkSync(name, join(folder, 'new'));
    renameSync(join(folder, 'new'), now);
  };
  swap(texts);
  const at = (file: string) => join(now, file);
  return {
    swap,
    at,
    write: (file: string, text: string) => writeFileSync(at(file), text),
    files: { ca: at('ca'), cert: at('cert'), key: at('key') },
  };
}

/** One with TLS, that gives a good answer to all but what `answer` keeps. */
export async function startTlsUpstream(options: TlsOptions = firstAuthority.server, atEnd: AtEnd = onTestFinished) {
  const calls: { readonly url: string; readonly shown: string | undefined; readonly headers: object }[] = [];
  let hold: (() => Promise<void>) | undefined;
  const server = createServer(options, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    calls.push({ url: request.url ?? '', shown: subject?.CN as string | undefined, headers: request.headers });
    const isRead = request.method === 'GET';
    const body = bodyOf(isRead ? 'getSubscription' : 'createApiKey', calls.length);
    void Promise.resolve(hold?.()).then(() =>
      response.writeHead(isRead ? 200 : 201, { 'content-type': 'application/json' }).end(body),
    );
  });
  let connections = 0;
  server.on('secureConnection', () => connections++);
  const port = await listenLocally(server);
  atEnd(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    server,
    calls,
    connections: () => connections,
    /** Of these, those that are still there. */
    open: () => promisify(server.getConnections.bind(server))(),
    holdAll: (at: typeof hold) => void (hold = at),
  };
}

interface Opening {
  readonly files?: TlsFiles;
  readonly proxy?: string;
  readonly noProxy?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export const refuse = (problems: unknown): never => {
  throw new Error(JSON.stringify(problems));
};

/** A gateway in this process that looks at its files all the time. */
export async function openGateway(url: string, { files = {}, proxy, noProxy = '', env = {} }: Opening = {}) {
  const told: LogLine[] = [];
  const tls = new WatchedTls('UPSTREAM', files, { logger: keepingLogger(told), refuse, everyMs: 5 });
  onTestFinished(() => tls.close());
  const way: Way = { tls, proxy: proxy === undefined ? undefined : new URL(proxy), noProxy };
  const gateway = await startGateway(url, { env: { RATE_LIMIT_PER_MINUTE: '0', ...env }, way });
  onTestFinished(() => gateway.close());
  return {
    gateway,
    /** Of its certificates. */
    told,
    ask: (options: Partial<CallOptions> = {}) => call(gateway.url, { path: READ, token: secret(), ...options }),
    reasons: () => gateway.lines.filter(({ msg }) => msg === 'request').map(({ reason }) => reason),
    warnings: () => gateway.lines.filter(({ level }) => level === 'warn'),
  };
}
