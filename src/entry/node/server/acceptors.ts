import type { Server } from 'node:http';
import { type AddressInfo, createServer, type ListenOptions, Server as NetServer } from 'node:net';

/** Connections that the kernel keeps until they are accepted; what is beyond it waits a second for its next try. */
const BACKLOG = 4_096;

export interface Acceptors {
  readonly port: number;
  /** Takes no more connections; those there are stay. */
  readonly close: () => void;
}

interface Wanted {
  readonly host: string;
  readonly port: number;
  readonly sockets: number;
}

/**
 * Listens with several sockets on one port, where the platform shares a port out. Of each, libuv takes one connection in
 * a turn of its loop: with one socket and turns of 50 ms, twenty new clients a second, and all others, probes among
 * them, wait behind those who are connected already.
 */
export async function accept(server: Server, { host, port, sockets }: Wanted): Promise<Acceptors> {
  const isShared = sockets > 1 && port !== 0; // whoever takes any port might be given one that others share
  if (!isShared) await listening(server, { host, port, backlog: BACKLOG });
  const extra = isShared ? await share(server, { host, port, sockets }) : [];
  const all = [server, ...extra];
  return {
    port: portOf(server),
    close() {
      // Of the http server the listener only: http's own close drops requests on their way.
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
    await listening(server, at); // a platform that shares no ports out
    return [];
  }
  return Promise.all(Array.from({ length: sockets - 1 }, () => feeder(server, { ...at, reusePort: true })));
}

/** Sockets that share a port do not notice when another process shares it too: one that does not share does. */
async function assertFree(at: ListenOptions): Promise<void> {
  const probe = createServer();
  await listening(probe, at);
  await new Promise((resolve) => void probe.close(resolve));
}

/** The options are those that an http server gives its sockets. */
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
