import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  barrier,
  hang,
  hold,
  json,
  reply,
  type ScriptedUpstream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import { freePort } from '../support/ports.ts';
import { emptyFolder, killAll, run } from '../runtime/node-gateway.ts';
import { startOldRedis } from '../store/engine-world.ts';
import { call } from '../support/http.ts';
import { openSocket, type RawSocket } from '../support/raw-client.ts';
import type { TestRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import type { Env } from '../support/world.ts';
import { begin, isRunning, type Manned, scraped, socketsOf, start } from './helpers.ts';

const PATH = '/api/v2/subscription/';
const SUBSCRIPTION = { id: 1, plan: 2, payment_method: null };
/** For tests that wait for a worker to start, on a busy machine. */
const SOON = { timeout: 40_000, interval: 50 };

let redis: TestRedis;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  redis = await startOldRedis();
});

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.on(`GET ${PATH}`, json(200, SUBSCRIPTION));
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

afterAll(() => redis.close());

const variables = (env: Env = {}): Env => ({ UPSTREAM_BASE_URL: upstream.url, STORE_URL: redis.url, ...env });

const startHere = (env: Env = {}, options?: Parameters<typeof start>[1]) => start(variables(env), options);

const read = (url: string, token = secret()) => call(url, { path: PATH, token });

async function ask(socket: RawSocket, token = secret()): Promise<number> {
  await socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${token}\r\n\r\n`);
  return (await socket.readResponse()).status;
}

const countOf = async ({ adminUrl }: Pick<Manned, 'adminUrl'>) =>
  (await scraped(adminUrl)).value('portico_requests_total', { operation: 'getSubscription' });

const counted = (count: number, text: string) => (record: Readonly<Record<string, unknown>>) =>
  record['msg'] === text && record['count'] === count;

describe('the configuration', () => {
  it.each(['2', '64'])('WORKERS=%s needs a store to share', async (WORKERS) => {
    const process = run({ env: { WORKERS, PORT: '0', ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url } });
    expect(await process.exited).toBe(78);
    expect(process.stderr()).toBe(`STORE_URL: expected a store for ${WORKERS} workers to share\n`);
  });

  it('a port that is taken is named once, and ends it with 1', async () => {
    const { port } = await startHere();
    const other = await begin(variables({ PORT: String(port) }));
    expect(await other.exited).toBe(1);
    expect(other.stderr()).toBe(`PORT: cannot listen on 127.0.0.1:${port}: it is already in use\n`);
  });

  it('a worker that does not start ends the process, with its status', async () => {
    const before = ['--import', 'data:text/javascript,if (process.env.PORTICO_WORKER) process.exit(3)'];
    const process = await begin(variables(), { before });
    expect(await process.exited).toBe(3);
    expect(process.records().filter(({ msg }) => msg === 'listening')).toEqual([]);
  });
});

describe('two workers', () => {
  it('serve one port, each as many connections', async () => {
    const gateway = await startHere();
    expect(gateway.records().find(({ msg }) => msg === 'listening')).toMatchObject({ url: gateway.url, count: 2 });
    const before = gateway.workers().map(socketsOf);
    const sockets: RawSocket[] = [];
    for (let n = 0; n < 8; n++) {
      const socket = await openSocket(gateway.port);
      sockets.push(socket);
      await socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'); // for which nobody else is asked
      expect((await socket.readResponse()).status).toBe(200);
    }
    const grown = gateway.workers().map((pid, n) => socketsOf(pid) - before[n]!);
    expect(grown).toEqual([4, 4]);
    for (const socket of sockets) socket.destroy();
  });

  it('are one on the admin listener: what they count is added, and readiness is said for both', async () => {
    const gateway = await startHere();
    for (let n = 0; n < 6; n++) await read(gateway.url);
    const { value, families } = await scraped(gateway.adminUrl);
    expect(value('portico_requests_total', { operation: 'getSubscription', status: '2xx' })).toBe(6);
    expect(value('portico_workers')).toBe(2);
    expect([value('portico_build_info'), value('portico_store_usable'), value('portico_circuit_open')]).toEqual([
      1, 1, 0,
    ]);
    expect(value('portico_requests_limit')).toBe(4_000);
    expect([...families.keys()].filter((name) => name.startsWith('process_'))).not.toEqual([]);
    expect((await call(gateway.adminUrl, { path: '/readyz' })).status).toBe(200);
    expect((await call(gateway.adminUrl, { path: '/livez' })).status).toBe(200);
  });

  it('one of which stands still hold up neither the other nor those who look', async () => {
    const gateway = await startHere();
    for (let n = 0; n < 4; n++) await read(gateway.url);
    expect(await countOf(gateway)).toBe(4);
    const [still = 0] = gateway.workers();
    process.kill(still, 'SIGSTOP');
    const startedAt = performance.now();
    expect(await countOf(gateway)).toBe(4); // what it said last
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    process.kill(still, 'SIGCONT');
  });
});

describe('a worker that dies', () => {
  it('is replaced and counted, and what it had counted stays', async () => {
    const gateway = await startHere();
    for (let n = 0; n < 6; n++) await read(gateway.url);
    expect(await countOf(gateway)).toBe(6);
    const [dying = 0, other] = gateway.workers();
    process.kill(dying, 'SIGKILL');
    await expect.poll(async () => (await scraped(gateway.adminUrl)).value('portico_worker_deaths_total'), SOON).toBe(1);
    expect(await countOf(gateway)).toBe(6);
    expect((await read(gateway.url)).status).toBe(200);
    await expect.poll(async () => (await scraped(gateway.adminUrl)).value('portico_workers'), SOON).toBe(2);
    expect(gateway.workers()).toContain(other);
    expect(gateway.workers()).not.toContain(dying);
    const said = gateway.records().filter(({ msg }) => msg === 'a worker has ended by itself');
    expect(said).toMatchObject([{ level: 'error', signal: 'SIGKILL' }]);
  });

  it('and whose successors do not start is tried again while the other serves; if none does, five times end the process', async () => {
    const flag = join(emptyFolder(), 'no-more');
    const script = `import { existsSync } from 'node:fs'; if (existsSync(${JSON.stringify(flag)})) process.exit(4)`;
    const gateway = await startHere({}, { before: ['--import', `data:text/javascript,${encodeURIComponent(script)}`] });
    const failures = () => gateway.records().filter(({ errno }) => errno === 'status 4').length;
    writeFileSync(flag, '');
    const [dying = 0, other = 0] = gateway.workers();
    process.kill(dying, 'SIGKILL');
    await gateway.until(() => failures() >= 2 || undefined);
    expect((await read(gateway.url)).status).toBe(200);
    process.kill(other, 'SIGKILL');
    expect(await gateway.exited).toBe(4);
    expect(failures()).toBeGreaterThanOrEqual(5);
  });

  it('is replaced by one with the configuration that is in force, whatever is in `.env` by then', async () => {
    const gateway = await startHere({}, { file: { MAX_BODY_BYTES: '1000' } });
    gateway.configure({ MAX_BODY_BYTES: 'many' });
    gateway.signal('SIGHUP');
    await gateway.until(() =>
      gateway.records().find(({ msg }) => msg.startsWith('the new configuration does not start')),
    );
    for (const pid of gateway.workers()) {
      process.kill(pid, 'SIGKILL');
      await expect.poll(() => gateway.workers().filter(isRunning).includes(pid), SOON).toBe(false);
      await expect.poll(async () => (await scraped(gateway.adminUrl)).value('portico_workers'), SOON).toBe(2);
    }
    expect((await read(gateway.url)).status).toBe(200);
  });
});

describe('SIGHUP', () => {
  it('replaces all, one by one, with what is in `.env` then; nobody who asks meanwhile is turned away', async () => {
    const gateway = await startHere({}, { file: { MAX_BODY_BYTES: '1000' } });
    gateway.configure({ MAX_BODY_BYTES: '10' });
    const post = () =>
      call(gateway.url, { method: 'POST', path: '/api/v2/apikey/', token: secret(), body: { label: 'longer' } });
    upstream.on('POST /api/v2/apikey/', json(201, { id: 1, key: 'k', label: '' }));
    expect((await post()).status).toBe(201);
    const before = gateway.workers();
    gateway.signal('SIGHUP');
    const statuses = new Set<number>();
    while (!gateway.records().some(({ msg }) => msg === 'all workers are new'))
      statuses.add((await read(gateway.url)).status);
    expect(statuses).toEqual(new Set([200]));
    expect(gateway.workers().filter((pid) => before.includes(pid))).toEqual([]);
    expect(gateway.workers()).toHaveLength(2);
    expect((await post()).status).toBe(413);
    expect((await call(gateway.adminUrl, { path: '/readyz' })).status).toBe(200);
  });

  it('with a configuration that does not start leaves the old ones as they are, and says so', async () => {
    const gateway = await startHere();
    const before = gateway.workers();
    gateway.configure({ MAX_BODY_BYTES: 'many' });
    gateway.signal('SIGHUP');
    const said = await gateway.until(() =>
      gateway.records().find(({ msg }) => msg.startsWith('the new configuration does not start')),
    );
    expect(said).toMatchObject({ level: 'error' });
    await gateway.until(() => /^MAX_BODY_BYTES: expected an integer/m.test(gateway.stderr()) || undefined);
    expect(gateway.workers()).toEqual(before);
    expect((await read(gateway.url)).status).toBe(200);
  });

  it('brings as many as the new configuration wants', async () => {
    const gateway = await startHere({}, { file: { WORKERS: '3' } });
    expect(gateway.records().find(counted(3, 'listening'))).toBeDefined();
    gateway.configure({ WORKERS: '1' });
    gateway.signal('SIGHUP');
    await gateway.until(() => gateway.records().find(counted(1, 'all workers are new')));
    expect(gateway.workers()).toHaveLength(1);
  });
});

describe('what is not to differ between workers', () => {
  it.each([
    ['STORE_URL', 'redis://127.0.0.1:1'],
    ['UPSTREAM_BASE_URL', 'http://localhost:1'],
    ['SECRETS', secret('of-other-workers-than-these')],
  ])('%s is not changed by SIGHUP, which says so', async (variable, value) => {
    const file = { ...variables(), SECRETS: secret('of-the-workers-of-this-test') };
    const gateway = await start({}, { file });
    const before = gateway.workers();
    gateway.configure({ ...file, [variable]: value });
    gateway.signal('SIGHUP');
    const said = await gateway.until(() =>
      gateway.records().find(({ msg }) => msg.startsWith('this variable changes')),
    );
    expect(said).toMatchObject({ level: 'error', variable });
    expect(gateway.workers()).toEqual(before);
  });

  it('new SECRETS come in front by SIGHUP, from a file too', async () => {
    const [old, fresh] = [secret('of-the-workers-of-before'), secret('of-the-workers-that-come')];
    const SECRETS_FILE = join(emptyFolder(), 'secrets');
    writeFileSync(SECRETS_FILE, old);
    const gateway = await start({}, { file: { ...variables(), SECRETS_FILE, SECRETS: '' } });
    writeFileSync(SECRETS_FILE, `${fresh},${old}`);
    gateway.signal('SIGHUP');
    await gateway.until(() => gateway.records().find(({ msg }) => msg === 'all workers are new'));
    expect((await read(gateway.url)).status).toBe(200);
    for (const pid of gateway.workers()) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
      expect(environment).not.toContain(fresh);
      expect(environment).not.toContain(old);
    }
  });
});

/** Workers but the first stand still until the file is there. */
const heldBack = (file: string) => [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import cluster from 'node:cluster';
    import { existsSync } from 'node:fs';
    while (cluster.isWorker && cluster.worker.id > 1 && !existsSync(${JSON.stringify(file)}))
      await new Promise((resolve) => setTimeout(resolve, 20));
  `)}`,
];

describe('while the first workers start', () => {
  it('SIGTERM lets a request finish that the first one has', async () => {
    const held = barrier();
    upstream.on(`GET ${PATH}`, reply(hold(held), json(200, SUBSCRIPTION)));
    const port = await freePort();
    const go = join(emptyFolder(), 'go');
    const process = await begin(variables({ PORT: String(port) }), { before: heldBack(go) });
    await expect
      .poll(async () => (await call(process.adminUrl, { path: '/readyz' }).catch(() => undefined))?.status, SOON)
      .toBe(200);
    const answer = ask(await openSocket(port));
    await upstream.waitForCalls(1);
    process.signal('SIGTERM');
    await expect.poll(async () => (await call(process.adminUrl, { path: '/readyz' })).status, SOON).toBe(503);
    held.release();
    expect(await answer).toBe(200);
    expect(await process.exited).toBe(0);
  });

  it('SIGHUP waits for them, and one that dies is replaced', async () => {
    const go = join(emptyFolder(), 'go');
    const process = await begin(variables(), { before: heldBack(go) });
    await expect
      .poll(async () => (await call(process.adminUrl, { path: '/readyz' }).catch(() => undefined))?.status, SOON)
      .toBe(200);
    process.signal('SIGHUP');
    globalThis.process.kill(process.workers()[0] ?? 0, 'SIGKILL');
    writeFileSync(go, '');
    await process.until(() => process.records().find(({ msg }) => msg === 'all workers are new'));
    expect(process.workers()).toHaveLength(2);
  });
});

describe('a worker that cannot be started at all', () => {
  it('since its program is gone for a moment is tried again', async () => {
    const node = join(emptyFolder(), 'node');
    copyFileSync(process.execPath, node);
    const gateway = await startHere({}, { node });
    renameSync(node, `${node}-away`);
    gateway.signal('SIGHUP');
    const said = await gateway.until(() => gateway.records().find(({ errno }) => errno === 'ENOENT'));
    expect(said).toMatchObject({ level: 'error' });
    renameSync(`${node}-away`, node);
    gateway.signal('SIGHUP');
    await gateway.until(() => gateway.records().find(({ msg }) => msg === 'all workers are new'));
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
  });
});

describe('the end', () => {
  it('a second SIGINT ends the workers too', async () => {
    upstream.on(`GET ${PATH}`, hang());
    const gateway = await startHere();
    const workers = gateway.workers();
    const cut = expect(ask(await openSocket(gateway.port))).rejects.toThrow();
    await upstream.waitForCalls(1);
    gateway.signal('SIGINT');
    await expect.poll(async () => (await call(gateway.adminUrl, { path: '/readyz' })).status, SOON).toBe(503);
    const again = setInterval(() => gateway.signal('SIGINT'), 50);
    expect(await gateway.exited).toBe(130);
    clearInterval(again);
    await cut;
    await expect.poll(() => workers.filter(isRunning), SOON).toEqual([]);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGQUIT'] as const)('%s lets all of them finish what they have', async (signal) => {
    const held = barrier();
    upstream.on(`GET ${PATH}`, reply(hold(held), json(200, SUBSCRIPTION)));
    const gateway = await startHere();
    const sockets = await Promise.all([openSocket(gateway.port), openSocket(gateway.port)]);
    const answers = sockets.map((socket) => ask(socket));
    await upstream.waitForCalls(2);
    gateway.signal(signal);
    await expect.poll(async () => (await call(gateway.adminUrl, { path: '/readyz' })).status, SOON).toBe(503);
    expect(gateway.records().find(({ msg }) => msg === 'stopping')).toMatchObject({ signal });
    held.release();
    expect(await Promise.all(answers)).toEqual([200, 200]);
    expect(await gateway.exited).toBe(0);
    expect(gateway.workers()).toEqual([]);
  });

  it('a primary that is killed leaves workers that finish what they have, and end', async () => {
    const held = barrier();
    upstream.on(`GET ${PATH}`, reply(hold(held), json(200, SUBSCRIPTION)));
    const gateway = await startHere();
    const workers = gateway.workers();
    const answer = ask(await openSocket(gateway.port));
    await upstream.waitForCalls(1);
    process.kill(gateway.pid, 'SIGKILL'); // it alone
    await expect.poll(() => isRunning(gateway.pid), SOON).toBe(false);
    held.release();
    expect(await answer).toBe(200);
    expect(await gateway.exited).toBe('SIGKILL'); // when all have closed its output
    await expect.poll(() => workers.filter(isRunning), SOON).toEqual([]);
  });
});
