import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import { expect } from 'vitest';
import { type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import type { OperationId } from '../support/account-api.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { requestOf } from '../support/versioned-upstream.ts';
import type { Env } from '../support/world.ts';

/** A gateway of two workers. */
export const startTwo = (upstreamUrl: string, env: Env = {}, entry?: string): Promise<NodeGateway> =>
  startNode({ WORKERS: '2', UPSTREAM_BASE_URL: upstreamUrl, RATE_LIMIT_PER_MINUTE: '0', ...env }, [], entry);

/** The processes that one has started and that still run. */
export function workersOf({ pid }: Pick<NodeGateway, 'pid'>): number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const pids = tasks.flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '));
  return pids.filter((one) => one !== '').map(Number);
}

/** A connection of a client, which one worker has accepted. */
export interface Connection {
  readonly pid: number;
  readonly call: (options: CallOptions) => Promise<TextAnswer>;
  /** The operation's example request. */
  readonly ask: (id: OperationId, options: Partial<CallOptions> & { readonly key?: string }) => Promise<TextAnswer>;
  readonly close: () => Promise<void>;
}

/** One to each worker, in the order of `workersOf`: the system picks, so more are made until each has one. */
export async function connectToAll(gateway: NodeGateway): Promise<Connection[]> {
  const pids = workersOf(gateway);
  const found = new Map<number, Connection>();
  while (found.size < pids.length) {
    const connection = await connectTo(gateway.url, pids);
    if (found.has(connection.pid)) await connection.close();
    else found.set(connection.pid, connection);
  }
  return pids.flatMap((pid) => found.get(pid) ?? []);
}

async function connectTo(url: string, pids: readonly number[]): Promise<Connection> {
  const connect = buildConnector({});
  let socket: Socket | undefined;
  const client = new Client(url, {
    connect: (options, done) =>
      connect(options, (...[error, made]) => {
        if (error) return done(error, null);
        socket = made;
        return done(null, made);
      }),
  });
  const over = (options: CallOptions) => call(url, options, client);
  expect((await over({ path: '/livez' })).status).toBe(200); // then it is accepted
  return {
    pid: ownerOf(pids, { server: Number(new URL(url).port), client: socket?.localPort ?? 0 }),
    call: over,
    ask: (id, { key, headers, ...others }) =>
      over({
        ...requestOf(id),
        headers: { ...(key !== undefined && { 'Idempotency-Key': key }), ...headers },
        ...others,
      }),
    close: () => client.close(),
  };
}

const hex = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`;

/** Which of these processes has the server's end of a connection between two ports of this machine. */
function ownerOf(pids: readonly number[], { server, client }: { readonly server: number; readonly client: number }) {
  const lines = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const line = lines.find(([, local, remote]) => local?.endsWith(hex(server)) && remote?.endsWith(hex(client)));
  const isIt = (pid: number) =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => linkAt(`/proc/${pid}/fd/${fd}`) === `socket:[${line?.[9]}]`);
  const owner = pids.find(isIt);
  if (owner === undefined) throw new Error('no worker has accepted the connection');
  return owner;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // it has been closed meanwhile
  }
}

/** Status, and the code of a problem. */
export const gist = ({ status, json }: TextAnswer): string =>
  status < 400 ? String(status) : `${status} ${(json as { readonly code?: string }).code ?? ''}`;

export const isReady = async ({ adminUrl }: NodeGateway): Promise<number> =>
  (await call(adminUrl, { path: '/readyz' })).status;
