import { existsSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { emptyFolder, killAll, type NodeGateway, ROOT, run, urlIn } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { freePort } from '../support/ports.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { VersionedUpstream } from '../support/versioned-upstream.ts';
import type { Env } from '../support/world.ts';
import { type Connection, connectToAll, gist, isReady, startTwo, workersOf } from './workers.ts';

/** For what a busy machine may be slow with. */
const SOON = { timeout: 40_000, interval: 20 };

let upstream: VersionedUpstream;
let connections: Connection[] = [];

beforeEach(async () => {
  upstream = new VersionedUpstream(await startUpstream());
});

afterEach(async () => {
  await Promise.all(connections.map((one) => one.close()));
  connections = [];
  await killAll();
  await upstream.upstream.close();
});

const start = (env: Env = {}) => startTwo(upstream.upstream.url, env);

async function connect(gateway: NodeGateway): Promise<[Connection, Connection]> {
  connections = await connectToAll(gateway);
  return connections as [Connection, Connection];
}

const said = (gateway: Pick<NodeGateway, 'records'>, words: string) =>
  gateway.records().filter(({ msg }) => msg === words);

const ENDED = 'a worker has ended, and another one takes its place';

/** Ends each worker before it begins while the file is there. */
const barredBy = (file: string) => {
  const code = `
    import { existsSync } from 'node:fs';
    if (process.env.PORTICO_WORKER && existsSync(${JSON.stringify(file)})) process.exit(3);`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
};

describe('at start', () => {
  it('there is one line that says where all listen, and the sandbox is announced once', async () => {
    const port = await freePort();
    const gateway = run({ env: { WORKERS: '2', PORT: String(port), ADMIN_PORT: '0', SANDBOX_PORT: '0' } });
    await gateway.until(() => /^Documentation: /m.exec(gateway.stdout()) ?? undefined);
    const url = `http://127.0.0.1:${port}`;
    expect(urlIn(gateway)).toBe(url);
    expect(workersOf(gateway)).toHaveLength(2);
    for (const at of await connect({ ...gateway, url } as NodeGateway))
      expect(gist(await at.call({ path: '/api/v2/subscription/', token: 'sandbox-paid-key' }))).toBe('200');
    expect(said(gateway, 'listening')).toHaveLength(1);
    expect(gateway.stdout().match(/with a sandbox upstream at/g)).toHaveLength(1);
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
  });

  it.each(['1', '2'])('a port that another gateway listens on is found out, with WORKERS=%s', async (others) => {
    const first = await start({ ADMIN_PORT: '0' });
    const second = run({
      env: { WORKERS: others, PORT: String(first.port), ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.upstream.url },
    });
    expect(await second.exited).toBe(1);
    expect(second.stderr()).toBe(`PORT: cannot listen on 127.0.0.1:${first.port}: it is already in use\n`);
  });

  it('a system that cannot share a port has one process: more are 78', async () => {
    const code = "Object.defineProperty(process, 'platform', { value: 'darwin' });";
    const gateway = run({
      env: { WORKERS: '2', NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` },
    });
    expect(await gateway.exited).toBe(78);
    expect(gateway.stderr()).toMatch(/^WORKERS: expected 1, .*share a port$/m);
    expect(gateway.stdout()).toBe('');
  });

  it.each([
    ['2', '1'],
    ['1', '2'],
    ['2', '2'],
  ])('a host with several gateways has one process: WORKERS=%s and %s are 78', async (...workers) => {
    const gateway = run({
      env: { PORT: '0', ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.upstream.url },
      command: [process.execPath, join(ROOT, 'test/workers/two-gateways.ts'), ...workers],
    });
    expect(await gateway.exited).toBe(78);
    expect(gateway.stderr()).toMatch(/^WORKERS: expected 1, .*several gateways$/m);
  });

  it('a process that nobody has started as a worker is none', async () => {
    const gateway = await start({ PORTICO_WORKER: '{"port":1}' });
    expect(await isReady(gateway)).toBe(200);
    expect(workersOf(gateway)).toHaveLength(2);
  });

  it('a worker that cannot start ends all, with its status', async () => {
    const file = join(emptyFolder(), 'barred');
    writeFileSync(file, '');
    const gateway = run({
      env: { WORKERS: '2', PORT: '0', ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.upstream.url, ...barredBy(file) },
    });
    expect(await gateway.exited).toBe(3);
    expect(said(gateway, 'a worker could not start, so none is left')).toMatchObject([{ reason: 'status 3' }]);
    expect(said(gateway, 'listening')).toEqual([]);
  });

  it('the app of a host runs in each of them', async () => {
    const entry = join(ROOT, 'test/runtime/hooks-node.ts');
    const gateway = await startTwo(upstream.upstream.url, { ADMIN_PORT: '0' }, entry);
    for (const at of await connect(gateway))
      expect((await at.call({ path: '/nowhere' })).json).toMatchObject({
        help: 'https://help.example/unknown_endpoint',
      });
  });
});

describe('a worker that dies', () => {
  it('is replaced, and the others serve on; what it had sent is of unknown outcome', async () => {
    const gateway = await start({ REQUEST_TIMEOUT_MS: '1000' });
    const [one, other] = await connect(gateway);
    const order = { token: secret(), key: secret('idempotency') };
    const held = upstream.holdNext(order.token, 'purchasePlan');
    const lost = expect(one.ask('purchasePlan', order)).rejects.toThrow();
    await held.reached;
    process.kill(one.pid, 'SIGKILL');
    await lost;
    held.release();
    const again = async () => gist(await other.ask('purchasePlan', order));
    expect(await again()).toMatch(/^409 /);
    await expect.poll(again, SOON).toBe('409 outcome_unknown');
    await gateway.until(() => (said(gateway, ENDED).length === 1 ? true : undefined));
    expect(said(gateway, ENDED)[0]).toMatchObject({ level: 'error', reason: 'SIGKILL' });
    await expect.poll(() => isReady(gateway), SOON).toBe(200);
    await Promise.all(connections.map((at) => at.close()));
    const anew = (await connect(gateway)).find(({ pid }) => pid !== other.pid)!;
    expect(gist(await anew.ask('purchasePlan', order))).toBe('409 outcome_unknown');
    expect(gist(await anew.ask('purchasePlan', { token: secret(), key: order.key }))).toBe('201');
    expect(upstream.callsOf(order.token, 'purchasePlan')).toHaveLength(1);
  });

  it('makes the instance unready until another is there', async () => {
    const file = join(emptyFolder(), 'barred');
    const gateway = await start(barredBy(file));
    const [one, other] = await connect(gateway);
    expect(await isReady(gateway)).toBe(200);
    writeFileSync(file, '');
    process.kill(one.pid, 'SIGKILL');
    await gateway.until(() => said(gateway, ENDED).find(({ reason }) => reason === 'status 3'));
    expect(await isReady(gateway)).toBe(503);
    expect((await call(gateway.adminUrl, { path: '/livez' })).status).toBe(200);
    expect(gist(await other.ask('getSubscription', { token: secret() }))).toBe('200');
    await rm(file);
    await expect.poll(() => isReady(gateway), SOON).toBe(200);
  });

  it('is replaced by one with the same configuration, whatever has become of its files', async () => {
    const cwd = emptyFolder();
    const port = await freePort();
    const [file, secrets, token] = [join(cwd, '.env'), join(cwd, 'secrets'), secret()];
    writeFileSync(file, `RATE_LIMIT_PER_MINUTE=100\nSECRETS_FILE=${secrets}`);
    writeFileSync(secrets, secret().padEnd(32, 'x'));
    const gateway = run({
      cwd,
      env: { WORKERS: '2', PORT: String(port), ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.upstream.url },
    });
    await gateway.until(() => said(gateway, 'listening')[0]);
    const at = { ...gateway, url: `http://127.0.0.1:${port}` } as NodeGateway;
    const [one] = workersOf(gateway);
    writeFileSync(file, 'RATE_LIMIT_PER_MINUTE=7\nMAX_BODY_BYTES=1\n');
    writeFileSync(secrets, secret().padEnd(32, 'x'));
    process.kill(one!, 'SIGKILL');
    await expect.poll(() => workersOf(gateway).filter((pid) => pid !== one).length, SOON).toBe(2);
    for (const worker of await connect(at)) {
      const answer = await worker.ask('purchasePlan', { token, key: 'key' });
      expect([answer.headers['ratelimit-policy'], gist(answer)]).toEqual([expect.stringContaining('q=100;'), '201']);
    }
    expect(upstream.callsOf(token, 'purchasePlan')).toHaveLength(1);
  });

  it('lets go what it has first if it got a SIGTERM', async () => {
    const gateway = await start();
    const [one] = await connect(gateway);
    const token = secret();
    const held = upstream.holdNext(token, 'getApiKey');
    const asking = one.ask('getApiKey', { token });
    await held.reached;
    process.kill(one.pid, 'SIGTERM');
    await expect.poll(() => isReady(gateway), SOON).toBe(503);
    held.release();
    expect(gist(await asking)).toBe('200');
    await gateway.until(() => said(gateway, ENDED)[0]);
    expect(said(gateway, ENDED)[0]).toMatchObject({ reason: 'status 0' });
    await expect.poll(() => isReady(gateway), SOON).toBe(200);
  });
});

describe('the first process', () => {
  it('takes all with it when it is killed', async () => {
    const gateway = await start();
    const workers = workersOf(gateway);
    process.kill(gateway.pid, 'SIGKILL');
    expect(await gateway.exited).toBe('SIGKILL'); // when nobody has its standard output any more
    for (const pid of workers) expect(existsSync(`/proc/${pid}/fd/1`)).toBe(false);
    await expect(call(gateway.url, { path: '/livez' })).rejects.toThrow('ECONNREFUSED');
  });

  it.each([
    ['SIGTERM', 'to it'],
    ['SIGINT', 'to all, as from a terminal'],
    ['SIGTERM', 'to all, as by systemd'],
  ] as const)('ends by %s %s when all have answered what they had', async (signal, whom) => {
    const gateway = await start();
    const asked = (await connect(gateway)).map((at) => {
      const token = secret();
      const held = upstream.holdNext(token, 'purchasePlan');
      return { held, answer: at.ask('purchasePlan', { token, key: secret('idempotency') }) };
    });
    for (const { held } of asked) await held.reached;
    process.kill(whom === 'to it' ? gateway.pid : -gateway.pid, signal);
    await vi.waitUntil(async () => (await isReady(gateway)) === 503, SOON);
    for (const { held } of asked) held.release();
    for (const { answer } of asked) expect(gist(await answer)).toBe('201');
    expect(await gateway.exited).toBe(0);
    expect(said(gateway, 'stopping')).toEqual([expect.objectContaining({ signal })]);
    expect(said(gateway, ENDED)).toEqual([]);
    expect(gateway.stderr()).toBe('');
  });

  it('ends all at once by a second SIGINT', async () => {
    const gateway = await start();
    const [one] = await connect(gateway);
    const token = secret();
    const held = upstream.holdNext(token, 'getApiKey');
    const cut = expect(one.ask('getApiKey', { token })).rejects.toThrow();
    await held.reached;
    gateway.signal('SIGINT');
    await expect.poll(() => isReady(gateway), SOON).toBe(503);
    const again = setInterval(() => gateway.signal('SIGINT'), 50);
    expect(await gateway.exited).toBe(130);
    clearInterval(again);
    await cut;
    held.release();
  });

  it('has all go on for SHUTDOWN_DELAY_MS, and tell their clients to leave', async () => {
    const gateway = await start({ SHUTDOWN_DELAY_MS: '600000' });
    const all = await connect(gateway);
    gateway.signal('SIGTERM');
    await expect.poll(() => isReady(gateway), SOON).toBe(503);
    for (const at of all) {
      const told = async () => (await at.call({ path: '/readyz' })).headers['connection'];
      await expect.poll(told, SOON).toBe('close');
    }
    expect((await call(gateway.url, { path: '/livez' })).status).toBe(200);
  });
});
