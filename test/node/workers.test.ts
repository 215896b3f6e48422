import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { says } from '../support/contract.ts';
import { exampleRequest } from '../support/examples.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { type NodeProcess, run, startNode } from '../support/process.ts';
import { secret } from '../support/secrets.ts';
import { Upstream } from '../support/upstream.ts';

/** The processes that one has started and that still run. */
function workersOf({ pid }: Pick<NodeProcess, 'pid'>): number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const pids = tasks.flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '));
  return pids.filter((one) => one !== '').map(Number);
}

interface Connection {
  readonly pid: number;
  readonly ask: (id: OperationId, options: Partial<CallOptions> & { readonly key?: string }) => Promise<TextAnswer>;
  readonly close: () => Promise<void>;
}

/** One to each worker: the system picks, so more are made until each has one. */
async function connectToAll(gateway: NodeProcess): Promise<[Connection, Connection]> {
  const pids = workersOf(gateway);
  const found = new Map<number, Connection>();
  while (found.size < pids.length) {
    const connection = await connectTo(gateway.url, pids);
    if (found.has(connection.pid)) await connection.close();
    else found.set(connection.pid, connection);
  }
  return [...found.values()] as [Connection, Connection];
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
  expect((await call(url, { path: '/livez' }, client)).status).toBe(200); // then it is accepted
  return {
    pid: ownerOf(pids, Number(new URL(url).port), socket?.localPort ?? 0),
    ask: (id, { key, ...options }) => {
      const headers = key === undefined ? {} : { 'Idempotency-Key': key };
      return call(url, { ...exampleRequest(id), headers, ...options }, client);
    },
    close: () => client.destroy(),
  };
}

const hex = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`;

/** Which of these processes has the server's end of a connection between two ports of this machine. */
function ownerOf(pids: readonly number[], server: number, client: number): number {
  const lines = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const inode = lines.find(([, local, remote]) => local?.endsWith(hex(server)) && remote?.endsWith(hex(client)))?.[9];
  const isIt = (pid: number) =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => linkAt(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`);
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

describe.skipIf(process.platform !== 'linux')(says('processes on one port, `auto` for one a core'), () => {
  const upstream = new Upstream();
  const ends: (() => Promise<unknown>)[] = [];
  let gateway: NodeProcess;
  let one: Connection;
  let other: Connection;

  beforeAll(async () => {
    const behind = await upstream.listen();
    ends.push(() => behind.close());
    const patient = { UPSTREAM_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '60000', SHUTDOWN_GRACE_MS: '60000' };
    const env = { WORKERS: '2', UPSTREAM_BASE_URL: behind.url, ...patient };
    gateway = await startNode(env, { atEnd: (end) => void ends.push(end) });
    [one, other] = await connectToAll(gateway);
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });

  const admin = async (path: string) => call(gateway.adminUrl, { path });
  const untilReady = async (status: number) => {
    while ((await admin('/readyz')).status !== status);
  };
  /** So many answers to one operation, of all processes. */
  const counted = async () =>
    /portico_requests_total\{[^}]*operation="getApiKey"[^}]*status="2xx"[^}]*\} (\d+)/.exec(
      (await admin('/metrics')).text,
    )?.[1];

  test(`${says('without `STORE_URL` the first process keeps what they share')}: a write through one is seen at once through the other, and hides what was while it is made`, async () => {
    const token = secret();
    for (const at of [one, other, one, other]) await at.ask('getReferralConfig', { token });
    expect(upstream.callsOf(token)).toHaveLength(2); // each has a copy of its own
    const held = upstream.hold('updateReferralConfig');
    const writing = one.ask('updateReferralConfig', { token });
    await held.call;
    const meanwhile = await other.ask('getReferralConfig', { token });
    expect(meanwhile.headers['cache-status']).toBe('portico; fwd=miss');
    held.release();
    await writing;
    for (const at of [other, one]) expect((await at.ask('getReferralConfig', { token })).text).toMatch('"x_version":2');
  });

  test('the admin listener adds up what is counted in both, and has no console', async () => {
    const before = Number((await counted()) ?? 0);
    for (const at of [one, one, other]) await at.ask('getApiKey', { token: secret() });
    expect(await counted()).toBe(String(before + 3));
    expect((await admin('/console')).status).toBe(404);
  });

  test('they start once each, and say so in one line', async () => {
    expect(gateway.records().filter(({ msg }) => msg === 'listening')).toHaveLength(1);
    const env = { WORKERS: '2', ADMIN_PORT: '0', UPSTREAM_BASE_URL: 'http://upstream.test' };
    const second = run({ ...env, PORT: String(gateway.port) });
    expect(await second.exited).toBe(1);
    expect(second.stderr()).toBe(`PORT: cannot listen on 127.0.0.1:${gateway.port}: it is already in use\n`);
  });

  test('one that dies is replaced, the other serves on; what it had sent is not sent again, and nothing counts less', async () => {
    const before = await counted();
    const order = { token: secret(), key: secret() };
    const held = upstream.hold('purchasePlan');
    const lost = expect(one.ask('purchasePlan', order)).rejects.toThrow();
    await held.call;
    process.kill(one.pid, 'SIGKILL');
    await lost;
    held.release();
    expect((await other.ask('purchasePlan', order)).status).toBe(409);
    expect(await gateway.line(({ reason }) => reason === 'SIGKILL')).toMatchObject({ level: 'error' });
    expect(await counted()).toBe(before);
    await untilReady(200);
    for (const at of [one, other]) await at.close();
    [one, other] = await connectToAll(gateway);
    for (const at of [one, other]) expect((await at.ask('purchasePlan', order)).status).toBe(409);
    expect(upstream.callsOf(order.token)).toHaveLength(1);
  });

  test('all end by SIGTERM when they have answered what they had', async () => {
    const tokens = [secret(), secret()];
    const held = tokens.map(() => upstream.hold('purchasePlan'));
    const answers = [one, other].map((at, n) => at.ask('purchasePlan', { token: tokens[n]!, key: secret() }));
    for (const { call: came } of held) await came;
    gateway.signal('SIGTERM');
    await untilReady(503);
    for (const each of held) each.release();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(await gateway.exited).toBe(0);
    expect(gateway.records().filter(({ msg }) => msg === 'stopping')).toMatchObject([{ signal: 'SIGTERM' }]);
  });

  test('all end when the first process is killed', async () => {
    const another = await startNode({ WORKERS: '2', UPSTREAM_BASE_URL: 'http://upstream.test' });
    const workers = workersOf(another);
    expect(workers).toHaveLength(2);
    process.kill(another.pid, 'SIGKILL');
    expect(await another.exited).toBe('SIGKILL'); // when nobody has its standard output any more
    for (const pid of workers) expect(existsSync(`/proc/${pid}/fd/1`)).toBe(false);
  });
});
