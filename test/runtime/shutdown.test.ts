import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Relay, startRelay, SWAP } from '../fleet/relay.ts';
import { hasRedis, SKIPPED, startOldRedis, type TestRedis } from '../support/redis.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { call } from '../support/http.ts';
import { openSocket, type RawSocket } from '../support/raw-client.ts';
import {
  barrier,
  hang,
  hold,
  json,
  reply,
  type ScriptedUpstream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { killAll, type NodeGateway, ROOT, run, startNode } from './node-gateway.ts';
import { times } from '../support/times.ts';

const ENTRY = join(ROOT, 'src/entry/node.ts');
const PATH = '/api/v2/subscription/';
const READ = `GET ${PATH}`;
const SUBSCRIPTION = { id: 1, plan: 2, payment_method: null };

let upstream: ScriptedUpstream;

beforeEach(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

const start = (env: Readonly<Record<string, string>> = {}) => startNode({ UPSTREAM_BASE_URL: upstream.url, ...env });

/** Resolves once the admin listener says that no more requests are wanted. */
async function draining({ adminUrl }: NodeGateway): Promise<void> {
  const readiness = async () => (await call(adminUrl, { path: '/readyz' })).status;
  await expect.poll(readiness, { timeout: 5_000, interval: 10 }).toBe(503);
}

/** What becomes of a new connection. */
async function connecting(port: number): Promise<string> {
  try {
    (await openSocket(port)).destroy();
    return 'accepted';
  } catch (error) {
    return String(error);
  }
}

const get = (port: number, token: string) =>
  `GET ${PATH} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Token ${token}\r\n\r\n`;

describe.each(['SIGTERM', 'SIGINT', 'SIGQUIT'] as const)('%s', (signal) => {
  it('turns readiness off, refuses new connections, and lets the request in flight have its answer', async () => {
    const held = barrier();
    upstream.on(READ, reply(hold(held), json(200, SUBSCRIPTION)));
    const gateway = await start();
    const inFlight = call(gateway.url, { path: PATH, token: secret() });
    await held.reached;
    gateway.signal(signal);
    await draining(gateway);
    expect((await call(gateway.adminUrl, { path: '/livez' })).status).toBe(200);
    await expect.poll(() => connecting(gateway.port), { timeout: 5_000, interval: 10 }).toContain('ECONNREFUSED');
    expect(gateway.hasExited()).toBe(false);
    held.release();
    expect(await inFlight).toMatchObject({ status: 200, json: SUBSCRIPTION });
    expect(await gateway.exited).toBe(0);
    expect(gateway.records().find(({ msg }) => msg === 'stopping')).toMatchObject({ signal });
    // The line of the request that was answered last is not lost.
    expect(gateway.records().at(-1)).toMatchObject({ route: PATH, status: 200 });
    await expect(call(gateway.adminUrl, { path: '/livez' })).rejects.toThrow('ECONNREFUSED');
  });

  it('is not held up by idle connections', async () => {
    upstream.on(READ, json(200, SUBSCRIPTION));
    const gateway = await start();
    const idle = await Promise.all(Array.from({ length: 20 }, () => openSocket(gateway.port)));
    for (const socket of idle.slice(0, 10)) {
      await socket.write(get(gateway.port, secret()));
      expect((await socket.readResponse()).status).toBe(200);
    }
    const sentAt = performance.now();
    gateway.signal(signal);
    expect(await gateway.exited).toBe(0);
    expect(performance.now() - sentAt).toBeLessThan(3_000); // of the ten seconds that it may take
    await Promise.all(idle.map(({ closed }) => closed));
  });
});

/** A process that gets the signal at the moment at which it wants to listen. */
const impatient = (signal: string) => `
  import { Server } from 'node:net';
  const { listen } = Server.prototype;
  Server.prototype.listen = function (...args) {
    process.kill(process.pid, '${signal}');
    return listen.apply(this, args);
  };`;

describe.each(['SIGTERM', 'SIGINT'] as const)('%s while it starts', (signal) => {
  it('ends it with status 0', async () => {
    const preload = `data:text/javascript,${encodeURIComponent(impatient(signal))}`;
    const gateway = run({
      env: { PORT: '0', ADMIN_PORT: '0' },
      command: [process.execPath, '--import', preload, ENTRY],
    });
    expect(await gateway.exited).toBe(0);
    expect(gateway.stderr()).toBe('');
  });
});

describe('a second SIGINT', () => {
  it('ends it at once, whatever is under way', async () => {
    upstream.on(READ, hang());
    const gateway = await start();
    const cut = expect(call(gateway.url, { path: PATH, token: secret() })).rejects.toThrow();
    await upstream.waitForCalls(1);
    gateway.signal('SIGINT');
    await draining(gateway);
    const again = setInterval(() => gateway.signal('SIGINT'), 50);
    expect(await gateway.exited).toBe(130);
    clearInterval(again);
    await cut;
  });

  it('that comes with the first is the same one: npm passes it on', async () => {
    const held = barrier();
    upstream.on(READ, reply(hold(held), json(200, SUBSCRIPTION)));
    const gateway = await start();
    const inFlight = call(gateway.url, { path: PATH, token: secret() });
    await held.reached;
    gateway.signal('SIGINT');
    gateway.signal('SIGINT');
    await draining(gateway);
    held.release();
    expect((await inFlight).status).toBe(200);
    expect(await gateway.exited).toBe(0);
  });
});

describe('SHUTDOWN_DELAY_MS', () => {
  it('is for how long new connections are still taken, told to close, and kept away by /readyz', async () => {
    upstream.on(READ, json(200, SUBSCRIPTION));
    const gateway = await start({ SHUTDOWN_DELAY_MS: '600000' });
    const old = await openSocket(gateway.port);
    gateway.signal('SIGTERM');
    await draining(gateway);
    for (const socket of [old, await openSocket(gateway.port)]) {
      await socket.write(get(gateway.port, secret()));
      expect(await socket.readResponse()).toMatchObject({ status: 200, headers: { connection: 'close' } });
    }
    const ready = await call(gateway.url, { path: '/readyz' });
    expect(ready).toMatchObject({ status: 503, json: { code: 'not_ready' } });
    expect(gateway.hasExited()).toBe(false);
  });

  it('is followed by the drain', async () => {
    const gateway = await start({ SHUTDOWN_DELAY_MS: '500' });
    const sentAt = performance.now();
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(450);
  });
});

describe('after the grace', () => {
  it('a request whose upstream hangs is cut off, and the exit status is still 0', async () => {
    upstream.on(READ, hang());
    const gateway = await start({ SHUTDOWN_GRACE_MS: '500' });
    const cut = expect(call(gateway.url, { path: PATH, token: secret() })).rejects.toThrow();
    await upstream.waitForCalls(1);
    const sentAt = performance.now();
    gateway.signal('SIGTERM');
    await cut;
    expect(await gateway.exited).toBe(0);
    const took = performance.now() - sentAt;
    expect(took).toBeGreaterThanOrEqual(450);
    expect(took).toBeLessThan(2_500);
    expect(gateway.records().find(({ msg }) => msg.startsWith('requests were cut off'))).toMatchObject({ count: 1 });
    expect(gateway.records().at(-1)).toMatchObject({ route: PATH, code: 'cut_off', status: 499 });
  });

  it('so is a client that never finishes its request', async () => {
    const gateway = await start({ SHUTDOWN_GRACE_MS: '500' });
    const socket = await openSocket(gateway.port);
    const head = `POST /api/v2/apikey/ HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n`;
    await socket.write(`${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`);
    await call(gateway.url, { path: '/livez' });
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    await socket.closed;
    expect(upstream.calls).toEqual([]);
  });
});

describe('a write under way', () => {
  it('is finished before the exit, even when its client has left', async () => {
    const held = barrier();
    upstream.on('POST /api/v2/apikey/', reply(hold(held), json(201, { id: 1, key: 'k', label: '' })));
    const gateway = await start();
    const leaving = new AbortController();
    const write = call(gateway.url, { path: '/api/v2/apikey/', token: secret(), body: {}, signal: leaving.signal });
    const gone = expect(write).rejects.toThrow();
    const [sent] = await upstream.waitForCalls(1);
    let isCut = false;
    void upstream.disconnected(sent!).then(() => (isCut = true));
    leaving.abort();
    await gone;
    gateway.signal('SIGTERM');
    await draining(gateway);
    // Longer than it takes an idle gateway to see that nobody is there any more.
    await expect(Promise.race([gateway.exited, afterIdleExit()])).resolves.toBe('still there');
    expect(isCut).toBe(false);
    held.release();
    expect(await gateway.exited).toBe(0);
    expect(upstream.calls).toHaveLength(1);
  });
});

const PURCHASE = '/api/v2/subscription/checkout/purchase/';

async function beginPurchase(signal?: AbortSignal) {
  const held = barrier();
  upstream.on(`POST ${PURCHASE}`, reply(hold(held), json(200, exampleBody('purchasePlan'))));
  const gateway = await start();
  const { body } = exampleInput('purchasePlan');
  const purchase = call(gateway.url, { path: PURCHASE, token: secret(), body, ...(signal && { signal }) });
  await held.reached;
  return { held, gateway, purchase, body };
}

describe('a purchase under way', () => {
  it('completes, and its client has the answer', async () => {
    const { held, gateway, purchase } = await beginPurchase();
    gateway.signal('SIGTERM');
    await draining(gateway);
    held.release();
    expect((await purchase).status).toBe(200);
    expect(await gateway.exited).toBe(0);
    expect(upstream.calls).toHaveLength(1);
  });

  it('completes when its client has left, asked of the upstream exactly once and whole', async () => {
    const leaving = new AbortController();
    const { held, gateway, purchase, body } = await beginPurchase(leaving.signal);
    const gone = expect(purchase).rejects.toThrow();
    leaving.abort();
    await gone;
    gateway.signal('SIGTERM');
    await draining(gateway);
    const [sent] = upstream.calls;
    held.release();
    expect(await gateway.exited).toBe(0);
    expect(upstream.calls).toHaveLength(1);
    expect(sent?.body).toBe(body);
  });
});

describe.skipIf(!hasRedis)(`a purchase whose end the store has not acknowledged${SKIPPED}`, () => {
  const SECRETS = secret('of-the-instances-themselves');
  let redis: TestRedis;
  let relay: Relay;

  beforeEach(async () => {
    redis = await startOldRedis();
    relay = await startRelay(redis.port);
  });

  afterEach(async () => {
    await killAll();
    await Promise.all([relay.close(), redis.close()]);
  });

  /** Its client has the answer. */
  const bought = async (env: Readonly<Record<string, string>> = {}) => {
    upstream.on(`POST ${PURCHASE}`, json(200, exampleBody('purchasePlan')));
    const gateway = await start({ STORE_URL: `redis://127.0.0.1:${relay.port}`, SECRETS, ...env });
    const held = relay.freeze({ at: SWAP, skip: 1 });
    const headers = { 'Idempotency-Key': secret('idempotency') };
    const request = { path: PURCHASE, token: secret(), body: exampleInput('purchasePlan').body, headers };
    expect((await call(gateway.url, request)).status).toBe(200);
    const again = async () => call((await start({ STORE_URL: redis.url, SECRETS, ...env })).url, request);
    return { gateway, held, again };
  };

  it('keeps the process until it has', async () => {
    const { gateway, held, again } = await bought();
    gateway.signal('SIGTERM');
    await draining(gateway);
    await expect(Promise.race([gateway.exited, afterIdleExit()])).resolves.toBe('still there');
    held.release();
    expect(await gateway.exited).toBe(0);
    expect(await again()).toMatchObject({ status: 200, headers: { 'idempotency-replayed': 'true' } });
    expect(upstream.calls).toHaveLength(1);
  });

  it('is logged where the grace is over before that, and its key is not sent again', async () => {
    const { gateway, again } = await bought({ SHUTDOWN_GRACE_MS: '500' });
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    const complaint = gateway.records().find(({ msg }) => msg.startsWith('stopping before the store has acknowledged'));
    expect(complaint).toMatchObject({ count: 1, level: 'error' });
    expect(await again()).toMatchObject({ status: 409, json: { code: 'idempotency_in_progress' } });
    expect(upstream.calls).toHaveLength(1);
  });
});

/** What another gateway takes to start and leave with nothing to do. */
async function afterIdleExit(): Promise<string> {
  const other = await start();
  other.signal('SIGTERM');
  await other.exited;
  return 'still there';
}

const CLIENTS = 50;
const ROUNDS_BEFORE = 20;
const TIMES = times(20);

/** One gateway, asked by many until it is told to stop; resolves with what its clients saw and what it logged. */
async function stoppedUnderLoad() {
  const gateway = await start({
    ADMIN_PORT: '0',
    CACHE_POLICY: '{"getSubscription":false}',
    RATE_LIMIT_PER_MINUTE: '0',
  });
  const request = get(gateway.port, secret());
  const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => openSocket(gateway.port)));
  let answers = 0;
  const warm = sockets.map(() => Promise.withResolvers<void>());
  const loops = sockets.map((socket, index) =>
    askUntilTold(socket, request, (ofThisClient) => {
      answers++;
      if (ofThisClient === ROUNDS_BEFORE) warm[index]?.resolve();
    }),
  );
  await Promise.all(warm.map(({ promise }) => promise));
  gateway.signal('SIGTERM');
  const ends = await Promise.all(loops);
  const status = await gateway.exited;
  const logged = gateway.records().filter(({ route }) => route === PATH).length;
  return { ends: [...new Set(ends)], status, missing: answers - logged };
}

describe('under load', () => {
  it(`no request is dropped, ${TIMES} times of ${TIMES}`, async () => {
    upstream.on(READ, json(200, SUBSCRIPTION));
    const good = { ends: ['told to leave'], status: 0, missing: 0 };
    for (let time = 0; time < TIMES; time += 2) {
      expect(await Promise.all([stoppedUnderLoad(), stoppedUnderLoad()])).toEqual([good, good]);
    }
    expect(upstream.unexpected).toEqual([]);
  }, 120_000);
});

/** One request after another on one connection, until an answer says that it was the last. Resolves with how it ended. */
async function askUntilTold(socket: RawSocket, request: string, answered: (times: number) => void): Promise<string> {
  for (let answers = 0; ;) {
    await socket.write(request);
    try {
      const { status, headers } = await socket.readResponse();
      answered(++answers);
      if (status !== 200) return `answered ${status}`;
      if (headers['connection'] === 'close') return 'told to leave';
    } catch {
      return `dropped after ${answers} answers`;
    }
  }
}
