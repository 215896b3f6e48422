import { describe, expect, onTestFinished, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleBody, exampleInput } from '../../support/examples.ts';
import { call } from '../../support/http.ts';
import { ENTRY, type NodeProcess, run, startNode } from '../../support/process.ts';
import { openSocket, type RawSocket } from '../../support/raw-client.ts';
import {
  barrier,
  hang,
  hold,
  json,
  reply,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts';
import { secret } from '../../support/secrets.ts';

const PATH = '/api/v2/subscription/';
const PURCHASE = '/api/v2/subscription/checkout/purchase/';
const CLIENTS = 20;
const ROUNDS = 5;
/** On a busy machine too it is the test that ends what it holds. */
const PATIENT = { UPSTREAM_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '60000', SHUTDOWN_GRACE_MS: '60000' };

const get = (token: string, path = PATH) => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${token}\r\n\r\n`;

async function open(env: Readonly<Record<string, string>> = {}) {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.on(`GET ${PATH}`, json(200, exampleBody('getSubscription')));
  const gateway = await startNode({ UPSTREAM_BASE_URL: upstream.url, RATE_LIMIT_PER_MINUTE: '0', ...PATIENT, ...env });
  return { upstream, gateway };
}

const stopping = (gateway: NodeProcess) => gateway.line(({ msg }) => msg === 'stopping');

/** One read after another on a connection, until an answer says that it was the last: then how many there were. */
async function readUntilTold(socket: RawSocket, answered: (times: number) => void): Promise<number> {
  const token = secret();
  for (let times = 1; ; times++) {
    await socket.write(get(token));
    const { status, headers } = await socket.readResponse();
    expect(status).toBe(200);
    answered(times);
    if (headers['connection'] === 'close') return times;
  }
}

/** Many clients that never pause. Resolves with what they had in all, when each has been told to leave. */
async function load({ port }: NodeProcess) {
  const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => openSocket(port)));
  const warm = sockets.map(() => Promise.withResolvers<void>());
  const reads = sockets.map((socket, n) => readUntilTold(socket, (times) => times === ROUNDS && warm[n]!.resolve()));
  const told = Promise.all(reads).then((all) => all.reduce((sum, one) => sum + one));
  await Promise.race([told, Promise.all(warm.map(({ promise }) => promise))]);
  return { told, idle: await openSocket(port) };
}

/** A purchase that has been sent, and whose client has left. */
async function abandonedPurchase({ url }: NodeProcess, upstream: ScriptedUpstream) {
  const held = barrier();
  upstream.on(`POST ${PURCHASE}`, reply(hold(held), json(200, exampleBody('purchasePlan'))));
  const leaving = new AbortController();
  const { body } = exampleInput('purchasePlan');
  const purchase = call(url, { path: PURCHASE, token: secret(), body, signal: leaving.signal });
  await held.reached;
  leaving.abort();
  await expect(purchase).rejects.toThrow();
  return { held, body };
}

/** A process of its own that gets the signal in the moment in which it begins to listen. */
async function signalledWhileItStarts(signal: string): Promise<readonly unknown[]> {
  const preload = `
    import { Server } from 'node:net';
    const { listen } = Server.prototype;
    Server.prototype.listen = function (...args) {
      process.kill(process.pid, '${signal}');
      return listen.apply(this, args);
    };`;
  const early = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, ENTRY];
  const starting = run({ PORT: '0', ADMIN_PORT: '0' }, { command: [process.execPath, ...early] });
  return [await starting.exited, starting.stderr()];
}

describe(says('after SIGTERM, SIGINT or SIGQUIT'), () => {
  test(`SIGTERM under load: ${says('then none, what is in flight finishes, exit 0')}`, async () => {
    const { upstream, gateway } = await open();
    const { held: write, body } = await abandonedPurchase(gateway, upstream);
    const read = barrier();
    upstream.on('GET /api/v2/referral/config/', reply(hold(read), json(200, exampleBody('getReferralConfig'))));
    const inFlight = call(gateway.url, { path: '/api/v2/referral/config/', token: secret() });
    await read.reached; // while it is held the gateway closes no connection
    const { told, idle } = await load(gateway);
    gateway.signal('SIGTERM');
    expect(await stopping(gateway)).toMatchObject({ signal: 'SIGTERM' });
    const answers = await told;
    await expect(openSocket(gateway.port)).rejects.toThrow('ECONNREFUSED'); // closed before anybody is told
    expect((await call(gateway.adminUrl, { path: '/readyz' })).status).toBe(503);
    read.release();
    expect((await inFlight).status).toBe(200);
    await idle.closed;
    expect(await signalledWhileItStarts('SIGTERM')).toEqual([0, '']); // in that time an idle one would have ended
    expect((await call(gateway.adminUrl, { path: '/livez' })).status).toBe(200);
    write.release();
    expect(await gateway.exited).toBe(0);
    expect(gateway.records().filter(({ route }) => route === PATH)).toHaveLength(answers);
    expect(upstream.callsTo(`POST ${PURCHASE}`).map((sent) => sent.body)).toEqual([body]);
    expect(gateway.stderr()).toBe('');
  });

  test(`SIGINT: ${says('`/readyz` is 503, answers carry `Connection: close`, connections are still taken for the delay')}`, async () => {
    const { upstream, gateway } = await open({ SHUTDOWN_DELAY_MS: '600000' });
    const old = await openSocket(gateway.port);
    gateway.signal('SIGINT');
    await stopping(gateway);
    for (const socket of [old, await openSocket(gateway.port)]) {
      await socket.write(get(secret()));
      expect(await socket.readResponse()).toMatchObject({ status: 200, headers: { connection: 'close' } });
    }
    for (const url of [gateway.url, gateway.adminUrl])
      expect(await call(url, { path: '/readyz' })).toMatchObject({ status: 503, json: { code: 'not_ready' } });
    upstream.on(`GET ${PATH}`, hang());
    const cut = expect(call(gateway.url, { path: PATH, token: secret() })).rejects.toThrow();
    await upstream.waitForCalls(3);
    await expectSecondToEnd(gateway);
    await cut;
  });

  test(`SIGQUIT: ${says('what is in flight finishes')}, or is cut off when the grace is over`, async () => {
    const { upstream, gateway } = await open({ SHUTDOWN_GRACE_MS: '1' });
    upstream.on(`GET ${PATH}`, hang());
    const cut = expect(call(gateway.url, { path: PATH, token: secret() })).rejects.toThrow();
    const socket = await openSocket(gateway.port);
    const head = `POST /api/v2/apikey/ HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n`;
    await socket.write(`${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`);
    await upstream.waitForCalls(1);
    await call(gateway.url, { path: '/livez' }); // the gateway has read what came before
    gateway.signal('SIGQUIT');
    await Promise.all([cut, socket.closed]);
    expect(await gateway.exited).toBe(0);
    expect(gateway.records().find(({ msg }) => msg.startsWith('requests were cut off'))).toMatchObject({ count: 2 });
    const lines = gateway.records().filter(({ route }) => route === PATH);
    expect(lines).toMatchObject([{ code: 'cut_off', status: 499 }]);
    expect(upstream.calls).toHaveLength(1);
  });
});

/** Sends it until it counts as a second one: that does not come with the first. */
async function expectSecondToEnd(gateway: NodeProcess): Promise<void> {
  const probe = () => call(gateway.adminUrl, { path: '/livez' }).catch(() => undefined);
  let status: unknown = 'none';
  for (; status === 'none'; status = await Promise.race([gateway.exited, probe().then(() => 'none')]))
    gateway.signal('SIGINT');
  expect(status, says('A second SIGINT ends at once')).toBe(130);
}
