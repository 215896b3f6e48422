import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SECRET } from '../../../../bench/harness/gateways.ts';
import { scrape } from '../../../../bench/harness/metrics.ts';
import { start, startGateway } from '../../../../bench/harness/processes.ts';
import { redisBinary, startRedis } from '../../../../bench/harness/redis.ts';
import { freePort } from '../../../../scripts/free-port.ts';
import { type Kind, startBalancer } from '../../../support/balancers.ts';
import { Visitors } from './visitors.ts';

/** Two gateways are restarted in turn under load, behind what we ship a configuration for: no request may be lost, by HAProxy. */
const KINDS: readonly Kind[] = ['haproxy', 'nginx'];

const { values: args } = parseArgs({ options: { restarts: { type: 'string', default: '20' } } });
const RESTARTS = Number(args.restarts);
/** Between two restarts. */
const PAUSE_MS = 500;
const UPSTREAM_MS = 20;
const LOOK_MS = 20;
/** A new gateway that is not asked within that time never is. */
const ASKED_MS = 60_000;

const compose = readFileSync(new URL('../../../../compose.yaml', import.meta.url), 'utf8');
const [, SHUTDOWN_DELAY_MS = '3000'] = /SHUTDOWN_DELAY_MS: .*?(\d+)/.exec(compose) ?? [];

type Env = Readonly<Record<string, string>>;

/** A gateway that is stopped, and started again on its port. */
async function startInstance(common: Env) {
  const env = { ...common, PORT: String(await freePort()) };
  let running = await startGateway({ env });
  const isAsked = async () => (await scrape(running.admin)).sum('portico_requests_total') > 0;
  return {
    at: `127.0.0.1:${env.PORT}`,
    stop: () => running.stop(),
    async restart() {
      const status = await running.end();
      if (status !== 0) throw new Error(`a gateway ended with status ${status}`);
      running = await startGateway({ env });
      for (const end = performance.now() + ASKED_MS; !(await isAsked()); await sleep(LOOK_MS))
        if (performance.now() > end) throw new Error('a new gateway is not asked');
    },
  };
}

/** Whether nothing was lost. */
async function run(kind: Kind): Promise<boolean> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts' });
  await upstream.ask({ ms: UPSTREAM_MS });
  const redis = await startRedis(0, { appendonly: 'yes' });
  const env = {
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_REQUESTS: 'failures',
    REQUEST_TIMEOUT_MS: '5000',
    SHUTDOWN_DELAY_MS,
    SECRETS: SECRET,
    STORE_URL: redis.url,
    UPSTREAM_BASE_URL: upstream.url,
  };
  const instances = await Promise.all([startInstance(env), startInstance(env)]);
  const balancer = await startBalancer(
    kind,
    instances.map(({ at }) => at),
  );
  const visitors = new Visitors(balancer.url);
  const visiting = visitors.run();
  const beganAt: number[] = [];
  for (let n = 0; n < RESTARTS; n++) {
    await sleep(PAUSE_MS);
    beganAt.push(performance.now());
    await instances[n % instances.length]?.restart();
  }
  await sleep(PAUSE_MS);
  visitors.leave();
  await visiting;
  const { charges } = (await upstream.ask({})) as { charges: Record<string, number> };
  await balancer.stop();
  await Promise.all([...instances, redis, upstream].map((one) => one.stop()));

  const { twice, untold, unmade } = visitors.wrongIn(charges);
  const { requests, purchases, failures } = visitors;
  console.log(
    `${kind}: ${requests} requests, ${purchases.length} purchases, ${RESTARTS} restarts; lost ${failures.length}, ` +
      `charged twice ${twice.length}, not answered ${untold.length}, not made ${unmade.length}`,
  );
  for (const { what, sentAt, failedAt, why } of failures.slice(0, 30)) {
    const began = beganAt.findLast((at) => at <= failedAt) ?? 0;
    const [sent, lost] = [sentAt, failedAt].map((at) => `${Math.round(at - began)} ms`);
    console.log(`  ${what}, sent ${sent} and lost ${lost} after a restart began: ${why}`);
  }
  // nginx does not ask /readyz, so a write can meet the moment in which the port closes. It is not sent again.
  const lost = failures.filter(
    ({ what, why }) => !(kind === 'nginx' && what === 'purchase' && why.startsWith('502 <')),
  );
  return lost.length + twice.length + untold.length + unmade.length === 0;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (redisBinary === undefined) {
  console.log('Neither redis-server nor valkey-server is installed: nothing is tried.');
  process.exit(process.env['CI'] === undefined ? 0 : 1);
}
for (const kind of KINDS) if (!(await run(kind))) process.exitCode = 1;
process.exit();
