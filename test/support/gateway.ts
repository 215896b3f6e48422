import { appendFileSync, mkdirSync } from 'node:fs';
import { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, onTestFinished, TestRunner } from 'vitest';
import { createAdminApp, createParts, createRefuser, type Deps } from '../../src/app.ts';
import { type Config, parseConfig } from '../../src/config.ts';
import type { LogFields, Logger } from '../../src/core/logger.ts';
import { consoleRoutes } from '../../src/entry/node/console/index.ts';
import { nodeDeps } from '../../src/entry/node/deps.ts';
import { serve, type ServeOptions } from '../../src/entry/node/server/serve.ts';
import { settingsIn } from '../../src/entry/node/settings.ts';
import type { Way } from '../../src/entry/node/transport.ts';
import type { Table } from '../../src/upstream/table.ts';
import { accountTables, type OperationId } from './account-api.ts';
import { testClock, type TestClock } from './clock.ts';
import { exampleRequest } from './examples.ts';
import { linesIn } from './http.ts';
import { secret } from './secrets.ts';
import { Upstream } from './upstream.ts';

/** Every log line of the whole test run goes here; at its end it is searched for secrets. */
export const LOG_FOLDER = join(import.meta.dirname, '../../test-output/logs');

export interface LogLine extends LogFields {
  readonly level: 'info' | 'warn' | 'error';
  readonly msg: string;
}

/** Variables of contract.md section 1. */
export type Env = Readonly<Record<string, string>>;

export interface Asking {
  readonly method?: string;
  /** In the place of the example's, with a query of its own. */
  readonly path?: string;
  /** Sent as `Authorization: Token …`; null: none. Unless it is given the gateway's `me` asks. */
  readonly token?: string | null;
  /** `Idempotency-Key`. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text is sent as it is, any other value as JSON. */
  readonly body?: unknown;
  /** Aborting it leaves. */
  readonly signal?: AbortSignal;
  /** Of the client, where the gateway is in this process. */
  readonly address?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text parsed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  readonly json: any;
  /** How often the account had been written when the upstream said it, and one. */
  readonly version: number | undefined;
  /** `Cache-Status`. */
  readonly cache: string | null;
  /** Of a problem. */
  readonly code: string | undefined;
}

/** An answer that is read line by line. */
export interface Lines {
  readonly status: number;
  readonly headers: Headers;
  /** The next one, once it is there; undefined after the last. */
  readonly next: () => Promise<string | undefined>;
  /** All that are left. */
  readonly rest: () => Promise<readonly string[]>;
}

/** What a test does with a gateway, wherever it runs. */
export interface Asked {
  /** The operation's example request. */
  readonly ask: (id: OperationId, asking?: Asking) => Promise<Answer>;
  /** A request with no more in it than is said, and the token. */
  readonly call: (path: string, asking?: Asking) => Promise<Answer>;
  /** The same, as lines. */
  readonly stream: (path: string, asking?: Asking) => Promise<Lines>;
  readonly upstream: Upstream;
  readonly clock: TestClock;
  /** Lets so many seconds pass. */
  readonly pass: (seconds: number) => Promise<void>;
  /** Resolves when what goes on behind answers is over. */
  readonly idle: () => Promise<void>;
  /** Who asks unless another is named. */
  readonly me: string;
}

/** In this process. */
export interface Gateway extends Asked {
  readonly app: { request(path: string, init?: RequestInit, env?: object): Response | Promise<Response> };
  /** For handlers of a host's. */
  readonly handlers: Parts['request'];
  /** The answer as soon as its head is there. */
  readonly request: (path: string, asking?: Asking) => Promise<Response>;
  /** Of the log so far, oldest first. */
  readonly lines: readonly LogLine[];
  /** As SIGTERM does. */
  readonly endWaits: () => void;
  /** Metrics as they are scraped. */
  readonly scrape: () => Promise<string>;
  readonly deps: Deps;
}

/** What the gateway is made with, in the place of what `npm start` makes it with. */
export interface GatewayOptions extends Partial<Omit<Deps, 'upstream' | 'config' | 'logger' | 'clock'>> {
  readonly upstream?: Upstream;
  readonly clock?: TestClock;
}

/** Time between two tests of one gateway: circuits are closed again, and limits are new. */
const BETWEEN_SECONDS = 600;

/** The gateway in this process: no socket, no timer, no disk. What its upstream complains of fails the test. */
export function openGateway(env: Env = {}, options: GatewayOptions = {}): Gateway {
  const { upstream = new Upstream(), clock = testClock(), ...given } = options;
  const { deps, built, lines } = partsOf(env['UPSTREAM_BASE_URL'] ?? 'http://upstream.test', {
    env,
    clock,
    transport: upstream.transport,
    ...given,
  });
  const { app, request: handlers } = createParts(deps);
  const me = secret();
  const request = async (path: string, { address, ...asking }: Asking = {}) =>
    app.request(
      path,
      initOf({ token: me, ...asking }),
      address === undefined ? {} : { incoming: incomingFrom(address) },
    );
  const call = async (path: string, asking?: Asking) => answerOf(await request(path, asking));
  const stream = async (path: string, asking?: Asking) => {
    const { status, headers, body } = await request(path, asking);
    return linesOf({ status, headers }, linesIn(body?.pipeThrough(new TextDecoderStream()) ?? Readable.from([])));
  };
  if (TestRunner.getCurrentTest()) onTestFinished(() => checkComplaints(upstream));
  else {
    beforeEach(() => clock.pass(BETWEEN_SECONDS));
    afterEach(() => checkComplaints(upstream));
  }
  return {
    app,
    handlers,
    request,
    call,
    stream,
    ask: askBy(call),
    upstream,
    clock,
    pass: (seconds) => clock.pass(seconds),
    idle: built.idle,
    me,
    lines,
    endWaits: built.endWaits,
    scrape: async () => (await built.scrape()).text,
    deps,
  };
}

export const askBy =
  (call: Asked['call']): Asked['ask'] =>
  (id, asking = {}) =>
    call(asking.path ?? exampleRequest(id).path, { ...exampleRequest(id), ...asking });

/** @throws Error for a call that nobody expected, or a scripted reply that nobody asked for */
export function checkComplaints(upstream: Upstream): void {
  const complaints = upstream.complaints();
  upstream.clear();
  upstream.calls.length = 0;
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
}

export const headersOf = ({ token, key, headers, body }: Asking): Record<string, string> => ({
  ...(typeof token === 'string' && { authorization: `Token ${token}` }),
  ...(body !== undefined && { 'content-type': 'application/json' }),
  ...(key !== undefined && { 'idempotency-key': key }),
  ...Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
});

export const textOf = (body: unknown): string | undefined =>
  typeof body === 'string' || body === undefined ? body : JSON.stringify(body);

/** Every request with a body has it where there are sockets. */
const lengthOf = (body: unknown) => String(Buffer.byteLength(textOf(body) ?? ''));

const initOf = (asking: Asking): RequestInit => {
  const { body, method = body === undefined ? 'GET' : 'POST', signal } = asking;
  return {
    method,
    headers: { ...(body !== undefined && { 'content-length': lengthOf(body) }), ...headersOf(asking) },
    ...(body !== undefined && { body: textOf(body)! }),
    ...(signal && { signal }),
  };
};

/** What @hono/node-server passes with a request from there. */
const incomingFrom = (remoteAddress: string) =>
  Object.create(IncomingMessage.prototype, { socket: { value: { remoteAddress } } }) as IncomingMessage;

export const linesOf = (head: Pick<Lines, 'status' | 'headers'>, lines: AsyncGenerator<string>): Lines => ({
  ...head,
  next: async () => (await lines.next()).value as string | undefined,
  async rest() {
    const left: string[] = [];
    for await (const line of lines) left.push(line);
    return left;
  },
});

const VERSION = /"x_version":(\d+)/;

/** The whole answer. */
export async function answerOf(response: Pick<Response, 'status' | 'headers' | 'text'>): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  const version = VERSION.exec(text)?.[1];
  const json = (): unknown => JSON.parse(text);
  return {
    status,
    headers,
    text,
    get json() {
      return json();
    },
    version: version === undefined ? undefined : Number(version),
    cache: headers.get('cache-status'),
    code: /problem/.test(headers.get('content-type') ?? '') && text ? (json() as { code?: string }).code : undefined,
  };
}

interface PartsOptions extends Omit<GatewayOptions, 'upstream' | 'clock'> {
  readonly env: Env;
  readonly clock: TestClock;
  /** By which the upstream is reached. */
  readonly way?: Way;
}

/** Made as `npm start` makes them, but for what is replaced. */
function partsOf(upstreamUrl: string, { env, clock, way = {}, ...others }: PartsOptions) {
  const replaced = { ...accountTables, ...others };
  const { table, overviews } = replaced;
  const config = configOf({ UPSTREAM_BASE_URL: upstreamUrl, RATE_LIMIT_PER_MINUTE: '0', ...env }, table);
  const lines: LogLine[] = [];
  const logger = keepingLogger(lines);
  const readiness = { isReady: () => true };
  const given = {
    table,
    overviews,
    config,
    upstream: new URL(upstreamUrl),
    logger,
    readiness,
    way,
    clock,
    random: () => 0,
  };
  const settings = settingsIn(env);
  const built = nodeDeps({ ...given, storeAddress: 'data' in settings ? settings.data.storeUrl : undefined });
  return { built, deps: { ...built.deps, ...replaced }, lines };
}

/** Behind sockets. */
export interface TestGateway {
  readonly url: string;
  readonly port: number;
  /** Of the admin listener, where one was asked for. */
  readonly adminUrl: string | undefined;
  readonly lines: readonly LogLine[];
  readonly endWaits: () => void;
  readonly idle: () => Promise<void>;
  close(): Promise<void>;
}

interface ServedOptions extends Omit<GatewayOptions, 'upstream'> {
  readonly env?: Env;
  readonly way?: Way;
  /** Whether to start the admin listener too. */
  readonly admin?: boolean;
  /** Of the listener, in milliseconds. */
  readonly limits?: ServeOptions['limits'];
  /** The app that the gateway is mounted in, in the gateway's place. */
  readonly around?: (app: Parts['app'], request: Parts['request']) => ServeOptions['app'];
}

type Parts = ReturnType<typeof createParts>;

const TURNS = 6;

/** The gateway as `entry/node.ts` builds it, on a free port, with a log that is kept. */
export async function startGateway(upstreamUrl: string, options: ServedOptions = {}): Promise<TestGateway> {
  const { env = {}, admin: isWanted = false, around, limits = {}, clock = testClock(), ...others } = options;
  const { deps, built, lines } = partsOf(upstreamUrl, { env, clock, ...others });
  const shared = { refuse: createRefuser(deps), waitUntil: deps.waitUntil, host: '127.0.0.1', port: 0 };
  const { app, request } = createParts(deps);
  const listener = await serve({ app: around?.(app, request) ?? app, ...shared, limits });
  const unhooked = { ...deps, hooks: undefined };
  const adminApp = createAdminApp(unhooked, built.scrape, consoleRoutes(deps.config.adminHost, built.recordings));
  const admin = isWanted ? await serve({ ...shared, refuse: createRefuser(unhooked), app: adminApp }) : undefined;
  return {
    url: listener.url,
    port: Number(new URL(listener.url).port),
    adminUrl: admin?.url,
    lines,
    endWaits: built.endWaits,
    idle: built.idle,
    async close() {
      built.endWaits();
      for (let turns = 0; turns < TURNS; turns++) await turn(); // those that waited have their answers
      await Promise.all([listener.drain(0), admin?.drain(0)]);
      await built.close();
      await built.idle();
    },
  };
}

export function configOf(env: Env, table: Table = accountTables.table): Config {
  const parsed = parseConfig(env, table);
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** As a line has them: what is undefined is not in it. */
const defined = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

export function keepingLogger(lines: LogLine[]): Logger {
  mkdirSync(LOG_FOLDER, { recursive: true });
  const file = join(LOG_FOLDER, `${process.pid}.ndjson`);
  const write = (level: LogLine['level']) => (fields: LogFields, msg: string) => {
    const line = { level, ...fields, msg };
    lines.push(line);
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };
  const [info, error] = [write('info'), write('error')];
  const request: Logger['request'] = (fields) => (fields.status < 500 ? info : error)(defined(fields), 'request');
  return { info, warn: write('warn'), error, request };
}
