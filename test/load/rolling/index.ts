import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { start } from '../support/processes.ts';
import { redisBinary, startRedis } from '../support/redis.ts';
import { Visitors } from '../support/visitors.ts';
import type { Kind } from '../../support/balancers.ts';
import { startFront } from './fronts.ts';

/** Gateways are restarted under load, behind what we ship a configuration for: no request may be lost. */
const KINDS = ['haproxy', 'nginx'] as const satisfies readonly Kind[];

const { values: args } = parseArgs({
  options: { restarts: { type: 'string', default: '20' }, front: { type: 'string', multiple: true } },
});
const RESTARTS = Number(args.restarts);
/** Between two restarts. */
const PAUSE_MS = 500;
const UPSTREAM_MS = 20;

/** Restarts one after the other; comes out with when each began, and what one took. */
async function restarts(restart: () => Promise<void>) {
  const beganAt: number[] = [];
  let tookMs = 0;
  for (let n = 0; n < RESTARTS; n++) {
    await sleep(PAUSE_MS);
    const at = performance.now();
    beganAt.push(at);
    await restart();
    tookMs += performance.now() - at;
  }
  await sleep(PAUSE_MS);
  return { beganAt, ms: tookMs / RESTARTS };
}

/** Whether nothing was lost. */
async function run(kind: Kind): Promise<boolean> {
  const upstream = await start({ script: 'test/load/support/failing-upstream.ts' });
  await upstream.ask({ ms: UPSTREAM_MS });
  const redis = await startRedis(0, { appendonly: 'yes' });
  const front = await startFront(kind, { UPSTREAM_BASE_URL: upstream.url, STORE_URL: redis.url });
  const visitors = new Visitors(front.url);
  const visiting = visitors.run();
  const { beganAt, ms } = await restarts(() => front.restart());
  visitors.leave();
  await visiting;
  const { charges } = (await upstream.ask({})) as { charges: Record<string, number> };
  await front.stop();
  await Promise.all([redis.stop(), upstream.stop()]);
  const { twice, untold, unmade } = visitors.wrongIn(charges);
  const { requests, purchases, failures } = visitors;
  console.log(
    `${kind}: ${requests} requests, ${purchases.length} purchases; lost ${failures.length}, charged twice ${twice.length}, ` +
      `not answered ${untold.length}, not made ${unmade.length}; ${RESTARTS} restarts of ${Math.round(ms)} ms`,
  );
  for (const { what, sentAt, failedAt, nth, why } of failures.slice(0, 30)) {
    const began = beganAt.findLast((at) => at <= failedAt) ?? 0;
    const at = (instant: number) => `${Math.round(instant - began)} ms`;
    console.log(
      `  ${what}, the connection's ${nth + 1}., sent ${at(sentAt)} and lost ${at(failedAt)} after a restart began: ${why}`,
    );
  }
  return failures.length + twice.length + untold.length + unmade.length === 0;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (redisBinary === undefined) {
  console.log('Neither redis-server nor valkey-server is installed: nothing is tried.');
  process.exit(process.env['CI'] === undefined ? 0 : 1);
}
for (const kind of KINDS.filter((one) => args.front?.includes(one) ?? true))
  if (!(await run(kind))) process.exitCode = 1;
process.exit();
