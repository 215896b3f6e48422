import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createSandbox } from './sandbox.ts';

export type RunningSandbox = Awaited<ReturnType<typeof startSandbox>>;

/** Starts the sandbox on a port of its own; 0 takes a free one. */
export async function startSandbox({ host = '127.0.0.1', port = 0 } = {}) {
  const sandbox = createSandbox({ cutConnection });
  // The gateway may live in this process too: its global Request and Response are not ours to replace.
  const server = createAdaptorServer({ fetch: sandbox.app.fetch, overrideGlobalObjects: false }) as Server;
  await once(server.listen({ host, port }), 'listening');
  const bound = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`,
    sandbox,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function cutConnection(env: unknown): void {
  // What node-server gives to fetch as the environment.
  (env as { incoming: IncomingMessage }).incoming.socket.destroy();
}
