import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import type { App } from '../../app.ts';
import type { Logger } from '../../core/logger.ts';
import type { Background } from '../../core/runtime.ts';
import type { Bindings } from '../../http/bindings.ts';
import { bindingsOf } from './head.ts';
import { refuseConnect, refuseUnparsable } from './unparsable.ts';

export interface ListenerOptions {
  readonly app: App;
  readonly logger: Logger;
  readonly background: Background;
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  readonly url: string;
  /** Takes no new connections, lets requests in flight finish, cuts off what is left after `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

/** Slow heads and bodies are cut off in seconds; Node's own limits leave them for minutes. */
const LIMITS = {
  headersTimeout: 3_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  keepAliveTimeout: 65_000, // longer than load balancers keep idle connections
  maxHeaderSize: 16_384,
  requireHostHeader: false, // ours answers with a problem
} as const;

/** How long there has to be no request before idle connections are closed: one may be on its way. */
const QUIET_MS = 250;
const POLL_MS = 25;

/** Turns of the event loop without a new connection after which the backlog is empty. */
const QUIET_TURNS = 5;
const MAX_BACKLOG_MS = 1_000;

const BINDINGS = Symbol('bindings');
const LAST = Symbol('last answer');

/**
 * The answer before this one on the same connection. Pipelined requests are begun one after the other: who sends
 * thousands and reads none would have all their answers made and kept.
 */
function lastOn(socket: Socket & { [LAST]?: ServerResponse }, outgoing: ServerResponse): ServerResponse | undefined {
  const before = socket[LAST];
  socket[LAST] = outgoing;
  return before;
}

interface Marked extends IncomingMessage {
  [BINDINGS]?: Bindings;
}

/** Serves an app on a port; 0 takes a free one. */
export async function listen({ app, logger, background, host, port }: ListenerOptions): Promise<Listener> {
  const answer = getRequestListener((request, { incoming }) => app.fetch(request, (incoming as Marked)[BINDINGS]));
  const traffic = { accepted: 0, inFlight: new Set<ServerResponse>(), lastAt: 0, draining: false };

  const serve = (incoming: Marked, outgoing: ServerResponse) => {
    const before = lastOn(incoming.socket, outgoing);
    if (!before || before.closed) return begin(incoming, outgoing);
    before.once('close', () => {
      if (!incoming.socket.destroyed) begin(incoming, outgoing);
    });
  };

  const begin = (incoming: Marked, outgoing: ServerResponse) => {
    traffic.inFlight.add(outgoing);
    outgoing.once('close', () => {
      traffic.inFlight.delete(outgoing);
      traffic.lastAt = Date.now();
    });
    if (traffic.draining) closeAfter(outgoing);
    incoming[BINDINGS] = { ...bindingsOf(incoming), background };
    void answer(incoming, outgoing);
  };

  const server = createServer(LIMITS, serve)
    .on('connection', () => traffic.accepted++)
    .on('checkExpectation', serve)
    .on('clientError', refuseUnparsable(logger))
    .on('connect', refuseConnect(logger));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });

  return {
    url: urlOf(host, server.address() as AddressInfo), // a listening TCP server has one
    async drain(graceMs) {
      traffic.draining = true;
      traffic.lastAt = Date.now();
      const endAt = Date.now() + graceMs;
      for (const outgoing of traffic.inFlight) closeAfter(outgoing);
      await emptyBacklog(() => traffic.accepted);
      NetServer.prototype.close.call(server); // the listener only: http's own close drops requests on their way
      const isQuiet = () => traffic.inFlight.size === 0 && Date.now() - traffic.lastAt >= QUIET_MS;
      while (!isQuiet() && Date.now() < endAt) await sleep(POLL_MS);
      server.closeAllConnections();
    },
  };
}

/**
 * Connections that the kernel has taken would be reset with the listener. Node accepts one or so in a turn; a flood of
 * new ones is given up on after a second.
 */
async function emptyBacklog(accepted: () => number): Promise<void> {
  const endAt = Date.now() + MAX_BACKLOG_MS;
  let seen: number;
  do {
    seen = accepted();
    for (let turns = 0; turns < QUIET_TURNS; turns++) await turn();
  } while (accepted() > seen && Date.now() < endAt);
}

/** The client is told not to send another request on this connection. */
function closeAfter(outgoing: ServerResponse): void {
  if (!outgoing.headersSent) outgoing.setHeader('Connection', 'close');
}

function urlOf(host: string, { port }: AddressInfo): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
