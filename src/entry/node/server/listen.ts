import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, type ListenOptions, Server as NetServer } from 'node:net';

/** Connections that the kernel keeps until they are accepted. Any more try again after a second. */
const BACKLOG = 4_096;

const SOCKETS = 32;

/**
 * Listens with several sockets on one port, if the platform allows it. libuv accepts one connection for each socket in a
 * turn of the event loop: with one socket and turns of 50 ms, only twenty new clients a second would get in, and probes
 * would wait with the others.
 * @returns a function for each of them, after which it takes no more connections; existing ones stay open
 */
export async function listen(server: Server, address: ListenOptions): Promise<readonly (() => void)[]> {
  const at = { ...address, backlog: BACKLOG };
  // A free port from the kernel might be one that another process shares. A worker gets its connections from its primary.
  const extra = at.port === 0 || cluster.isWorker ? await alone(server, at) : await shared(server, at);
  // `net`'s close ends only listening; that of `http` would also drop requests on their way.
  return [server, ...extra].map((one) => () => void NetServer.prototype.close.call(one));
}

async function alone(server: Server, at: ListenOptions): Promise<readonly NetServer[]> {
  await listening(server, at);
  return [];
}

/** Returns the sockets besides the server's own. */
async function shared(server: Server, at: ListenOptions): Promise<readonly NetServer[]> {
  // Fails if another process uses the port, which sockets with `reusePort` would not notice.
  const probe = createServer();
  await listening(probe, at);
  await once(probe.close(), 'close');
  const sharing = { ...at, reusePort: true };
  try {
    await listening(server, sharing);
  } catch {
    return alone(server, at); // the platform cannot share ports
  }
  return Promise.all(Array.from({ length: SOCKETS - 1 }, () => feeder(server, sharing)));
}

/** With the same options that an http server gives its sockets. */
async function feeder(server: Server, at: ListenOptions): Promise<NetServer> {
  const feeding = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
  await listening(feeding, at);
  return feeding;
}

const listening = (server: NetServer, at: ListenOptions) => once(server.listen(at), 'listening');
