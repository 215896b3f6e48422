import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { listenLocally } from '../support/ports.ts';
import {
  hang,
  json,
  perCall,
  reply,
  reset,
  type ScriptedUpstream,
  startUpstream,
  type Step,
} from '../support/scripted-upstream.ts';
import { killAll, startNode } from '../runtime/node-gateway.ts';
import type { OperationId } from '../support/account-api.ts';
import { exampleBody, exampleInput, exampleRequest } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { goodAnswer } from '../support/marked.ts';
import { hasPrometheus, SKIPPED as WITHOUT_PROMETHEUS } from '../support/prometheus.ts';
import { requestText } from '../support/raw-client.ts';
import { hasRedis, SKIPPED as WITHOUT_REDIS, startRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { startPrometheus } from './prometheus.ts';

afterAll(killAll);

const ID = 'getSubscription';
const { path: PATH } = exampleInput(ID);

/** A gateway that one thing goes wrong with, and which alerts that is to fire. */
interface Provoked {
  readonly gateway: Pick<TestGateway, 'adminUrl'>;
  /** Begins the trouble. */
  readonly begin: () => unknown;
  /** What clients do, over and over, before the trouble and in it; nothing where no request can succeed. */
  readonly ask?: () => Promise<unknown>;
  /** What clients do once it has begun. */
  readonly askThen?: () => Promise<unknown>;
  readonly firing: readonly string[];
}

async function open(url: string, env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const gateway = await startGateway(url, { admin: true, env: { RATE_LIMIT_PER_MINUTE: '0', ...env } });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function openUpstream(): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, 1)),
  );
  return upstream;
}

const send = ({ url }: TestGateway, id: OperationId = ID, token = secret()) =>
  call(url, { ...exampleRequest(id), token });

/** Whose upstream begins to do this with reads of the subscription. */
async function misled(step: Step, firing: readonly string[]): Promise<Provoked> {
  const upstream = await openUpstream();
  const gateway = await open(upstream.url);
  return { gateway, firing, ask: () => send(gateway), begin: () => upstream.on(`GET ${PATH}`, step) };
}

const BURN = ['PorticoErrorBudgetBurn page', 'PorticoErrorBudgetBurn ticket'];
const CIRCUIT = ['PorticoCircuitOpen page', ...BURN];

/** Which cannot be called at all. It is left alone until then. */
async function unreachable(url: string, reason: 'tls' | 'dns'): Promise<Provoked> {
  const gateway = await open(url);
  const firing = [...CIRCUIT, `PorticoUpstreamTlsOrDns page ${reason}`];
  return { gateway, firing, begin: () => undefined, askThen: () => send(gateway) };
}

async function plainServer(): Promise<number> {
  const server = createServer();
  const port = await listenLocally(server);
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    await closed;
  });
  return port;
}

async function withStore(): Promise<Provoked> {
  const [redis, upstream] = await Promise.all([startRedis(), openUpstream()]);
  onTestFinished(() => redis.close());
  const gateway = await open(upstream.url, { STORE_URL: redis.url, SECRETS: secret('of-these-alerts') });
  return {
    gateway,
    ask: () => send(gateway),
    begin: () => redis.signal('SIGSTOP'),
    firing: ['PorticoStoreUnusable page'],
  };
}

async function buying(): Promise<Provoked> {
  const upstream = await openUpstream();
  const gateway = await open(upstream.url);
  const begin = () => {
    upstream.once(`POST ${exampleInput('purchasePlan').path}`, reset());
    return send(gateway, 'purchasePlan');
  };
  return { gateway, begin, ask: () => send(gateway), firing: ['PorticoUnknownOutcome ticket'] };
}

const SLOTS = 4;

/** All of its calls are under way, each of an account that the upstream has accepted. */
async function full(): Promise<Provoked> {
  const upstream = await openUpstream();
  const env = { UPSTREAM_MAX_CONNECTIONS: String(SLOTS), UPSTREAM_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '60000' };
  const gateway = await open(upstream.url, env);
  const tokens = Array.from({ length: SLOTS }, () => secret());
  const begin = async () => {
    for (const token of tokens) await send(gateway, 'getReferralConfig', token);
    upstream.on(`GET ${PATH}`, hang());
    for (const token of tokens) send(gateway, ID, token).catch(() => undefined); // it ends with the gateway
    await upstream.waitForCalls(SLOTS, `GET ${PATH}`);
  };
  return { gateway, begin, firing: ['PorticoSaturated page calls'] };
}

const SOCKETS = 145;
const KEPT_OPEN_MS = 1_000;
const PROBE = requestText({ target: '/livez' });

/** A process that may open 300 files, and has nearly as many connections as it may have with that: 156. */
async function crowded(): Promise<Provoked> {
  const upstream = await openUpstream();
  const limited = ['sh', '-c', 'ulimit -n 300; exec "$@"', 'sh'];
  const env = { UPSTREAM_BASE_URL: upstream.url, UPSTREAM_MAX_CONNECTIONS: '16' };
  const gateway = await startNode(env, limited);
  const begin = () => {
    const sockets = Array.from({ length: SOCKETS }, () => connect(gateway.port, '127.0.0.1'));
    const probe = () => sockets.forEach((socket) => socket.write(PROBE));
    const probing = setInterval(probe, KEPT_OPEN_MS);
    for (const socket of sockets) socket.on('error', () => undefined).resume();
    onTestFinished(() => {
      clearInterval(probing);
      for (const socket of sockets) socket.destroy();
    });
  };
  return { gateway, begin, firing: ['PorticoSaturated page connections'] };
}

const everyTenth = (step: Step): Step => {
  let count = 0;
  return perCall((to) => (count++ % 10 === 0 ? step : goodAnswer(to, 1)));
};

/** What is wrong with the answer is one field. */
const drifted = () => json(200, { ...(JSON.parse(exampleBody(ID)) as object), plan: 'none' });

const late: Step = reply(() => sleep(1_200), json(200, exampleBody(ID)));

const openAll = async (): Promise<Readonly<Record<string, Provoked>>> => ({
  good: await misled(
    perCall((to) => goodAnswer(to, 2)),
    [],
  ),
  errors: await misled(everyTenth(json(500, '{}')), BURN),
  slow: await misled(late, ['PorticoSlow ticket']),
  circuit: await misled(reset(), CIRCUIT),
  tls: await unreachable(`https://127.0.0.1:${await plainServer()}`, 'tls'),
  dns: await unreachable(`http://${'a'.repeat(64)}.invalid`, 'dns'), // a label that no name may have
  store: await withStore(),
  purchases: await buying(),
  drift: await misled(drifted(), [`PorticoDrift ticket ${ID}`]),
  full: await full(),
  crowded: await crowded(),
});

/** Does it over and over, some at once, until the test is over. */
function keep(asking: () => Promise<unknown>): void {
  const over = new AbortController();
  const going = (async () => {
    while (!over.signal.aborted) {
      await Promise.all(Array.from({ length: 5 }, asking));
      await sleep(200);
    }
  })();
  onTestFinished(async () => {
    over.abort();
    await going;
  });
}

/** All that has fired so far. */
const FIRED = 'max_over_time(ALERTS{alertstate="firing"}[1h])';

/** An alert as the table of what is expected has it. */
const nameOf = ({ alertname, severity, reason, what, operation }: Readonly<Record<string, string>>) =>
  [alertname, severity, reason, what, operation].filter((text) => text !== undefined).join(' ');

test.skipIf(!hasPrometheus || !hasRedis)(
  `each alert fires in a real Prometheus when it is provoked, and none in a good run${WITHOUT_PROMETHEUS}${WITHOUT_REDIS}`,
  async () => {
    const jobs = await openAll();
    const all = Object.entries(jobs);
    for (const { ask } of Object.values(jobs)) await ask?.(); // the first may be slow on a busy machine, and is not scraped
    const { query, alerts, rules, close } = await startPrometheus(
      Object.fromEntries(all.map(([job, { gateway }]) => [job, gateway.adminUrl ?? ''])),
    );
    onTestFinished(close);
    for (const { ask } of Object.values(jobs)) if (ask) keep(ask);

    // For as long as it takes the windows to fill, all is good.
    const SCRAPED = 8;
    const scrapes = `count_over_time(portico_build_info[1m]) >= ${SCRAPED}`;
    await vi.waitFor(async () => expect(await query(scrapes)).toHaveLength(all.length), { timeout: 60_000 });
    expect(await query(FIRED)).toEqual([]);

    await Promise.all(all.map(([, { begin }]) => begin()));
    for (const { askThen } of Object.values(jobs)) if (askThen) keep(askThen);
    const expected = Object.fromEntries(all.map(([job, { firing }]) => [job, firing.toSorted()]));
    const fired = async () => {
      const found = await query(FIRED);
      const of = (job: string) => found.filter((one) => one['job'] === job).map(nameOf);
      return Object.fromEntries(all.map(([job]) => [job, of(job).toSorted()]));
    };
    await vi.waitFor(async () => expect(await fired()).toEqual(expected), { timeout: 60_000, interval: 250 });

    const active = await alerts();
    expect(
      active.map(({ annotations }) => JSON.stringify(annotations)).filter((text) => /\{\{|<error|NaN/.test(text)),
    ).toEqual([]);
    expect((await rules()).filter(({ health }) => health !== 'ok')).toEqual([]);
  },
);
