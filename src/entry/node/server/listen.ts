import { createServer } from 'node:http';
import type { App } from '../../../app.ts';
import type { Metrics } from '../../../core/metrics.ts';
import type { WaitUntil } from '../../../core/runtime.ts';
import { accept, urlOf } from './acceptors.ts';
import { addresses, peerOf, proxies } from './address.ts';
import { Connections } from './connections.ts';
import { closeAfter, Traffic } from './draining.ts';
import { isMisframed } from './head.ts';
import { NodeInbound } from './inbound.ts';
import { inTurn, type Serve } from './pipeline.ts';
import { LoopPressure } from './pressure.ts';
import { shedder } from './shed.ts';
import { refuseConnect, refuseUnparsable } from './unparsable.ts';
import { Unsent } from './unsent.ts';

export interface ListenerOptions {
  readonly app: Pick<App, 'fetch' | 'enter' | 'refuse'>;
  readonly waitUntil: WaitUntil;
  readonly host: string;
  readonly port: number;
  /** How many sockets listen; each accepts one connection in a turn of the event loop. */
  readonly sockets?: number;
  /** CIDRs and addresses whose `X-Forwarded-For` is believed. */
  readonly trustedProxies?: readonly string[];
  /** Counts the requests that are turned away under overload. Absent: none are turned away. */
  readonly shedding?: Metrics;
  /** How many connections there may be; beyond it the address that has most loses those without a request. Absent: any number. */
  readonly mostConnections?: number;
  /** Of all answers, what clients have not taken yet. */
  readonly mostUnsentBytes?: number;
  /** How long a client may take nothing of its answer; at most twice that. */
  readonly stalledAfterMs?: number;
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
  maxHeaderSize: 65_536, // we refuse smaller ones
  requireHostHeader: false, // ours answers with a problem
} as const;

/** The kernel takes some hundred KB at a time, so a slow reader may seem to stand still for long. */
const STALLED_AFTER_MS = 20_000;

/** Serves an app on a port; 0 takes a free one. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { host, port, sockets = 1, stalledAfterMs = STALLED_AFTER_MS, trustedProxies = [] } = options;
  const traffic = new Traffic();
  const unsent = new Unsent(options.mostUnsentBytes);
  const connections = new Connections(options.mostConnections ?? Infinity, {
    peerOf,
    isProxy: proxies(trustedProxies),
  });
  const serve = inTurn(beginner(options, traffic, unsent));
  const server = createServer(LIMITS, serve)
    .on('connection', (socket) => {
      traffic.accept();
      connections.add(socket);
    })
    .on('checkExpectation', serve)
    .on('clientError', refuseUnparsable(options.app))
    .on('connect', refuseConnect(options.app));
  const stopAccepting = await accept(server, { host, port }, sockets);
  const stopCutting = unsent.cutStalled(stalledAfterMs);
  return {
    url: urlOf(server, host),
    async drain(graceMs) {
      await traffic.drain(graceMs, { stopAccepting, cutAll: () => server.closeAllConnections() });
      server.close(); // the listener is closed already; this ends the timer that checks its connections
      stopCutting();
    },
  };
}

function beginner(
  { app, waitUntil, shedding: metrics, trustedProxies = [] }: ListenerOptions,
  traffic: Traffic,
  unsent: Unsent,
): Serve {
  const addressOf = addresses(trustedProxies);
  const pressure = new LoopPressure({ done: () => traffic.done });
  const shed = metrics && shedder({ app, metrics, pressure: pressure.watch(), addressOf });
  const tools = { waitUntil, addressOf, unsent };
  return (incoming, outgoing) => {
    const inbound = new NodeInbound(incoming, outgoing, tools);
    if (traffic.isDraining) closeAfter(outgoing);
    if (inbound.refused && isMisframed(incoming)) closeAfter(outgoing);
    const entered = incoming.method === 'GET' && !inbound.refused ? app.enter(inbound) : undefined;
    if (entered?.answer) {
      inbound.send(entered.answer);
      return traffic.answered(outgoing);
    }
    traffic.begin(outgoing);
    if (shed?.(inbound, traffic.inFlight)) return traffic.refuse();
    const { method, path, send } = inbound;
    // Nothing is at `/-`. All that Hono looks at of a request: the rest is the inbound's, and what Hono comes back with has been sent.
    const request = { method, url: `http://portico${inbound.refused ? '/-' : path}` } as Request;
    void Promise.resolve(app.fetch(request, { inbound, begun: entered?.begun, send })).catch(() => outgoing.destroy());
  };
}
