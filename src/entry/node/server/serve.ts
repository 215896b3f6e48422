import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { GatewayError } from '../../../core/errors.ts';
import type { WaitUntil } from '../../../core/runtime.ts';
import type { refuser } from '../../../middleware/reply.ts';
import type { Env } from '../../../middleware/request.ts';
import { addresses, proxies } from './address.ts';
import { Connections } from './connections.ts';
import { isMisframed, MessageHead, refusalOf, urlOfRefused } from './guard.ts';
import { listen } from './listen.ts';
import { inTurn, lastOf } from './pipeline.ts';
import { closeAfter, type Rooms, Traffic } from './traffic.ts';
import type { Unsent } from './unsent.ts';

export interface ServeOptions {
  readonly app: Pick<Hono<Env>, 'fetch'>;
  /** Answers what the guards refuse. */
  readonly refuse: ReturnType<typeof refuser>;
  readonly unsent: Unsent;
  readonly waitUntil: WaitUntil;
  /** Where requests that only wait give back their room. */
  readonly rooms?: Rooms;
  readonly host: string;
  readonly port: number;
  /** CIDRs and addresses whose `X-Forwarded-For` is believed. */
  readonly trustedProxies?: readonly string[];
  /** How many requests may be under way; beyond half of it an address has a quarter. Probes are not refused. */
  readonly mostRequests?: number;
  /** Called for each request that is one too many. */
  readonly onOverload?: () => void;
  /** How many connections there may be; beyond it the address that has most loses those without a request. Absent: any number. */
  readonly mostConnections?: number;
  /** For how long an idle connection is kept: longer than load balancers keep theirs. */
  readonly keepAliveMs?: number;
  /** How long a client may take nothing of its answer; at most twice that. */
  readonly stalledAfterMs?: number;
}

export interface Serving {
  readonly url: string;
  /** How many there are now. */
  readonly load: () => { readonly requests: number; readonly connections: number };
  /** Answers from now on tell their clients to close; new connections are still taken. */
  tellToClose(): void;
  /** Takes no new connections, lets requests in flight finish, cuts off what is left after `graceMs`: `onCut` hears how many. */
  drain(graceMs: number, onCut?: (count: number) => void): Promise<void>;
}

/** Where clients and operators find it. */
export interface Served {
  readonly url: string;
  /** Undefined with `ADMIN_PORT=0`. */
  readonly adminUrl: string | undefined;
}

/** Slow heads and bodies are cut off in seconds; Node's own limits leave them for minutes. */
const LIMITS = {
  headersTimeout: 3_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 65_536, // we refuse smaller ones
  requireHostHeader: false, // ours answers with a problem
  joinDuplicateHeaders: true, // else the second is dropped in silence
} as const;

/** The kernel takes some hundred KB at a time, so a slow reader may seem to stand still for long. */
const STALLED_AFTER_MS = 20_000;

/** Serves an app on a port; 0 takes a free one. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { host, port, unsent, trustedProxies = [], stalledAfterMs = STALLED_AFTER_MS } = options;
  const { mostRequests = Infinity, mostConnections = Infinity, keepAliveMs: keepAliveTimeout = 65_000 } = options;
  const traffic = new Traffic(mostRequests, addresses(trustedProxies));
  const connections = new Connections(mostConnections, proxies(trustedProxies));
  const answer = inTurn(guarded(options, traffic));
  const server = createServer({ ...LIMITS, keepAliveTimeout }, answer)
    .on('connection', (socket) => {
      traffic.accept();
      connections.add(socket);
    })
    .on('checkExpectation', answer)
    .on('clientError', refuseUnparsable)
    .on('connect', (_, socket) => refuseUnparsable({}, socket));
  options.rooms?.set(server, traffic);
  const stopAccepting = await listen(server, { host, port });
  const stopCutting = unsent.cutStalled(stalledAfterMs);
  return {
    url: urlOf(server, host),
    load: () => ({ requests: traffic.underWay, connections: connections.size }),
    tellToClose: () => traffic.tellToClose(),
    async drain(graceMs, onCut) {
      const cutAll = () => {
        if (traffic.size > 0) onCut?.(traffic.size);
        server.closeAllConnections();
      };
      await traffic.drain(graceMs, { stopAccepting, cutAll });
      server.close(); // ends the timer that checks its connections
      stopCutting();
    },
  };
}

const OVERLOADED = GatewayError.of('overloaded', { retryAfter: 1 });

/** What stands before Hono's listener: it refuses what is no good HTTP, or one request too many. */
function guarded({ app, refuse, unsent, waitUntil, onOverload }: ServeOptions, traffic: Traffic) {
  const execution = { waitUntil, passThroughOnException() {}, props: {} };
  const listener = getRequestListener((request, env) => app.fetch(request, env, execution));
  const turnAway = (incoming: IncomingMessage, outgoing: ServerResponse, error: GatewayError) => {
    const { status, headers, body } = refuse(new MessageHead(incoming, urlOfRefused(incoming)), error);
    outgoing.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
  };
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const refused = refusalOf(incoming);
    if (refused && isMisframed(incoming)) closeAfter(outgoing);
    const hasRoom = traffic.begin(outgoing, refused !== undefined);
    if (refused) return turnAway(incoming, outgoing, GatewayError.of(refused));
    if (!hasRoom) {
      onOverload?.();
      return turnAway(incoming, outgoing, OVERLOADED);
    }
    // It rejects where a host's handler sets a header that cannot be sent; an error that nobody handles ends the process.
    void listener(incoming, outgoing).then(
      () => unsent.look(outgoing),
      () => outgoing.destroy(),
    );
  };
}

const STATUSES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** How long a client may take to read the refusal. Closed at once, a reset would overtake it. */
const LINGER_MS = 1_000;

/** What never becomes a request gets a bare status, unless the client would take it for the answer to another request. */
function refuseUnparsable({ code = '' }: { readonly code?: string }, socket: Duplex): void {
  if (!socket.writable || code === 'ECONNRESET' || isMistakable(socket as Socket)) return void socket.destroy();
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${STATUSES[code] ?? '400 Bad Request'}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const leave = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(leave));
}

/** Whether an answer is under way, or due to a request before, or the request that goes wrong has been answered already. */
function isMistakable(socket: Socket): boolean {
  const last = lastOf(socket);
  if (!last) return false;
  const { writableFinished, headersSent, req } = last.answer;
  return writableFinished ? !req.complete : !last.isNext || headersSent || req.complete;
}

/** Of a server that listens on a port. */
function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
