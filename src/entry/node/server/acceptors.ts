import type { Server } from 'node:http';
import { type AddressInfo, createServer, type ListenOptions, Server as NetServer } from 'node:net';

/** Connections that the kernel keeps until they are accepted. Any more try again after a second. */
const BACKLOG = 4_096;

export interface Acceptors {
  readonly port: number;
  /** Takes no more connections; existing ones stay open. */
  readonly close: () => void;
}

interface Wanted {
  readonly host: string;
  readonly port: number;
  readonly sockets: number;
}

/**
 * Listens with several sockets on one port, if the platform allows it. libuv accepts one connection for each socket in a
 * turn of the event loop: with one socket and turns of 50 ms, only twenty new clients a second would get in, and probes
 * would wait with the others.
 */
export async function accept(server: Server, { host, port, sockets }: Wanted): Promise<Acceptors> {
  const isShared = sockets > 1 && port !== 0; // a free port from the kernel might be one that another process shares
  if (!isShared) await listening(server, { host, port, backlog: BACKLOG });
  const extra = isShared ? await share(server, { host, port, sockets }) : [];
  const all = [server, ...extra];
  return {
    port: portOf(server),
    close() {
      // `net`'s close ends only listening; that of `http` would also drop requests on their way.
      for (const one of all) NetServer.prototype.close.call(one);
    },
  };
}

/** The sockets besides the server's own. */
async function share(server: Server, { host, port, sockets }: Wanted): Promise<readonly NetServer[]> {
  await assertFree({ host, port });
  const at = { host, port, backlog: BACKLOG };
  try {
    await listening(server, { ...at, reusePort: true });
  } catch {
    await listening(server, at); // the platform cannot share ports
    return [];
  }
  return Promise.all(Array.from({ length: sockets - 1 }, () => feeder(server, { ...at, reusePort: true })));
}

/** Fails if another process uses the port. Sockets with `reusePort` would not notice, so this one has none. */
async function assertFree(at: ListenOptions): Promise<void> {
  const probe = createServer();
  await listening(probe, at);
  await new Promise((resolve) => void probe.close(resolve));
}

/** With the same options that an http server gives its sockets. */
async function feeder(server: Server, at: ListenOptions): Promise<NetServer> {
  const feeding = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
  await listening(feeding, at);
  return feeding;
}

function listening(server: NetServer, at: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

const portOf = (server: NetServer) => (server.address() as AddressInfo).port; // a listening TCP server has one
