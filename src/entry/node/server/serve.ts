import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { GatewayError } from '../../../core/errors.ts';
import type { WaitUntil } from '../../../core/runtime.ts';
import type { refuser } from '../../../http/reply.ts';
import type { Env } from '../../../http/request.ts';
import { hostAt } from './address.ts';
import { MAX_HEADERS, refusalOf } from './guard.ts';
import { Answer, type Connection, Traffic } from './traffic.ts';

export interface ServeOptions {
  readonly app: Pick<Hono<Env>, 'fetch'>;
  /** Answers what the guards refuse. */
  readonly refuse: ReturnType<typeof refuser>;
  readonly waitUntil: WaitUntil | undefined;
  readonly host: string;
  readonly port: number;
  /** Other processes listen there too, and the system spreads the connections. */
  readonly reusePort?: boolean;
  /** How many requests may be under way. Probes are not refused. */
  readonly mostRequests?: number;
  /** What clients may have been sent and not read yet. Beyond it the client is cut off that has taken nothing for longest. */
  readonly mostUnreadBytes?: number;
  /** Called for each request that is one too many. */
  readonly onOverload?: () => void;
  /** False where the caller looks itself at what clients have not read. */
  readonly sweeps?: boolean;
  /** What takes the place of some of `LIMITS`. */
  readonly limits?: Partial<Record<keyof typeof LIMITS, number>>;
  /** How many connections there may be; others are closed at once. */
  readonly mostConnections?: number;
}

export type Serving = Awaited<ReturnType<typeof serve>>;

/** Where clients and operators find a gateway. */
export interface Served {
  readonly url: string;
  /** Undefined with `ADMIN_PORT=0`. */
  readonly adminUrl: string | undefined;
  /** Undefined where there is none. */
  readonly consoleUrl?: string;
}

/** Slow heads and bodies are cut off in seconds; Node's own limits leave them for minutes. */
const LIMITS = {
  keepAliveTimeout: 65_000, // longer than most balancers keep idle connections; docs/deploying.md says which do not
  headersTimeout: 3_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 65_536, // we refuse smaller ones
} as const;

const PARSING = {
  requireHostHeader: false, // ours answers with a problem
  joinDuplicateHeaders: true, // else the second is dropped in silence
} as const;

/** Connections that the kernel keeps until they are accepted. Any more try again after a second. */
const BACKLOG = 4_096;

const SWEEP_MS = 1_000;

const MOST_UNREAD_BYTES = 256 * 1_048_576;

/** Serves an app on a port; 0 takes a free one. */
export async function serve(options: ServeOptions) {
  const { host, port, reusePort = false, mostConnections = Infinity } = options;
  const { mostRequests: requests = Infinity, mostUnreadBytes: unreadBytes = MOST_UNREAD_BYTES } = options;
  const traffic = new Traffic({ requests, unreadBytes }, guarded(options));
  const answer = ({ socket }: IncomingMessage, outgoing: Answer) => traffic.connections.get(socket)?.add(outgoing);
  const server = createServer({ ...LIMITS, ...options.limits, ...PARSING, ServerResponse: Answer }, answer)
    .on('connection', (socket) => traffic.accept(socket))
    .on('checkContinue', (incoming, outgoing) => {
      // The client is told to send its body when somebody reads it. A client that is refused before that need not send it.
      incoming.once('resume', () => outgoing.headersSent || outgoing.writeContinue());
      answer(incoming, outgoing);
    })
    .on('checkExpectation', answer)
    .on('clientError', ({ code }: NodeJS.ErrnoException, socket) => refuseUnparsable(traffic, socket, code))
    .on('connect', (_, socket) => refuseUnparsable(traffic, socket));
  server.maxConnections = mostConnections;
  await once(server.listen({ host, port, reusePort, backlog: BACKLOG }), 'listening');
  /** Looks at what clients have not read. */
  const sweep = (now = performance.now()) => traffic.sweep(now);
  const sweeping = options.sweeps === false ? undefined : setInterval(sweep, SWEEP_MS).unref();
  return {
    url: urlAt(host, (server.address() as AddressInfo).port),
    /** How many requests, connections and unread bytes there are now. */
    load() {
      const { underWay, connections, unreadBytes: unread } = traffic;
      return { requests: underWay, connections: connections.size, unreadBytes: unread };
    },
    /** Answers from now on tell their clients to close; new connections are still taken. */
    tellToClose: () => traffic.tellToClose(),
    sweep,
    /** Takes no new connections, lets requests in flight finish, cuts off what is left after `graceMs`: `onCut` hears how many. */
    async drain(graceMs: number, onCut?: (count: number) => void): Promise<void> {
      NetServer.prototype.close.call(server); // that of `http` would also drop requests on their way
      const left = await traffic.drain(graceMs);
      if (left > 0) onCut?.(left);
      server.closeAllConnections();
      server.close(); // ends the timer that checks its connections
      clearInterval(sweeping);
    },
  };
}

const OVERLOADED = GatewayError.of('overloaded', { retryAfter: 1 });

/** What stands before Hono's listener: it refuses what is no good HTTP, or one request too many. */
function guarded({ app, refuse, waitUntil, onOverload }: ServeOptions) {
  const execution = { waitUntil: waitUntil ?? (() => undefined), passThroughOnException() {}, props: {} };
  const listener = getRequestListener((request, env) => app.fetch(request, env, execution));
  const turnAway = (answer: Answer, error: GatewayError) => {
    const { method = '', url = '', headers: sent, rawHeaders } = answer.req;
    const isReadable = rawHeaders.length <= 2 * MAX_HEADERS && url.startsWith('/');
    const header = (name: string) => sent[name] as string | undefined; // only `Set-Cookie` is a list
    const head = { method, url: `http://portico${isReadable ? url : '/'}`, header };
    const { status, headers, body } = refuse(head, error);
    answer.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
  };
  return (answer: Answer, traffic: Traffic) => {
    const refused = refusalOf(answer);
    if (refused) return turnAway(answer, GatewayError.of(refused));
    if (!traffic.enter(answer)) {
      onOverload?.();
      return turnAway(answer, OVERLOADED);
    }
    // It rejects where a host's handler sets a header that cannot be sent; an error that nobody handles ends the process.
    void listener(answer.req, answer).then(
      () => traffic.connections.get(answer.req.socket)?.look(),
      () => answer.destroy(),
    );
  };
}

const STATUSES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** What never becomes a request gets a bare status, unless the client would take it for the answer to another request. */
function refuseUnparsable(traffic: Traffic, socket: Duplex, code = ''): void {
  const connection = traffic.connections.get(socket as Socket);
  if (connection?.isDropping) return connection.end(); // it has its answer
  const { bytesRead } = socket as Socket; // a client that connects ahead would take a 408 for its answer
  const isSilent = !socket.writable || code === 'ECONNRESET' || bytesRead === 0;
  if (!connection || isSilent || isMistakable(connection)) return void socket.destroy();
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${STATUSES[code] ?? '400 Bad Request'}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  connection.end();
}

/** Whether an answer is under way, or due to a request before, or the request that goes wrong has been answered already. */
function isMistakable(connection: Connection): boolean {
  if (!connection.last) return false;
  const { writableFinished, headersSent, req } = connection.last;
  return writableFinished ? !req.complete : connection.waiting.length > 0 || headersSent || req.complete;
}

/** The URL of a server that listens there. */
export const urlAt = (host: string, port: number): string => `http://${hostAt(host, port)}`;
