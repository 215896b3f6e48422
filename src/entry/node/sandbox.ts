import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { ServerType } from '@hono/node-server';
import { startOfDay } from '../../sandbox/clock.ts';
import { createSandbox } from '../../sandbox/sandbox.ts';
import type { Sandbox, SandboxOptions } from '../../sandbox/sandbox.ts';

export interface StartSandboxOptions extends Omit<SandboxOptions, 'cutConnection'> {
  readonly host?: string;
  /** 0, the default, takes a free one. */
  readonly port?: number;
}

export interface RunningSandbox {
  readonly url: string;
  readonly sandbox: Sandbox;
  readonly close: () => Promise<void>;
}

/** Starts the sandbox on a port of its own. */
export async function startSandbox({
  host = '127.0.0.1',
  port = 0,
  ...options
}: StartSandboxOptions = {}): Promise<RunningSandbox> {
  const sandbox = createSandbox({ seedTime: startOfDay, ...options, cutConnection });
  // The gateway may live in this process too: its global Request and Response are not ours to replace.
  const server = createAdaptorServer({ fetch: sandbox.app.fetch, overrideGlobalObjects: false });
  const address = await listen(server, { host, port });
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    sandbox,
    close: () => close(server),
  };
}

function cutConnection(env: unknown): void {
  // What node-server gives to fetch as the environment.
  (env as { incoming: IncomingMessage }).incoming.socket.destroy();
}

function listen(server: ServerType, at: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      // A server that listens on a port has an address of this kind.
      resolve(server.address() as AddressInfo);
    });
  });
}

function close(server: ServerType): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
}
