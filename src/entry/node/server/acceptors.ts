import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, createServer, type ListenOptions, Server as NetServer } from 'node:net';

/** Connections that the kernel keeps until they are accepted. Any more try again after a second. */
const BACKLOG = 4_096;

/**
 * Listens with several sockets on one port, if the platform allows it. libuv accepts one connection for each socket in a
 * turn of the event loop: with one socket and turns of 50 ms, only twenty new clients a second would get in, and probes
 * would wait with the others.
 * @returns a function after which no more connections are taken; existing ones stay open
 */
export async function accept(server: Server, address: ListenOptions, sockets: number): Promise<() => void> {
  const at = { ...address, backlog: BACKLOG };
  const isShared = sockets > 1 && at.port !== 0; // a free port from the kernel might be one that another process shares
  if (!isShared) await listening(server, at);
  const extra = isShared ? await share(server, at, sockets - 1) : [];
  return () => {
    // `net`'s close ends only listening; that of `http` would also drop requests on their way.
    for (const one of [server, ...extra]) NetServer.prototype.close.call(one);
  };
}

/** Returns `many` sockets besides the server's own. */
async function share(server: Server, at: ListenOptions, many: number): Promise<readonly NetServer[]> {
  await assertFree(at);
  const shared = { ...at, reusePort: true };
  try {
    await listening(server, shared);
  } catch {
    await listening(server, at); // the platform cannot share ports
    return [];
  }
  return Promise.all(Array.from({ length: many }, () => feeder(server, shared)));
}

/** Fails if another process uses the port. Sockets with `reusePort` would not notice, so this one has none. */
async function assertFree(at: ListenOptions): Promise<void> {
  const probe = createServer();
  await listening(probe, at);
  await once(probe.close(), 'close');
}

/** With the same options that an http server gives its sockets. */
async function feeder(server: Server, at: ListenOptions): Promise<NetServer> {
  const feeding = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
  await listening(feeding, at);
  return feeding;
}

const listening = (server: NetServer, at: ListenOptions) => once(server.listen(at), 'listening');

/** Of a server that listens on a port. */
export function urlOf(server: NetServer, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
