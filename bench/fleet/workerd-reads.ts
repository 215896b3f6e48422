import { fleetLoad } from '../harness/fleet-load.ts';
import { OVERVIEW, READ, SECONDS, WARM_SECONDS } from './reads.ts';
import { start } from '../harness/processes.ts';
import { startWorkerd } from './workerd.ts';

const ACCOUNTS = 1_000;
const CONNECTIONS = 50;
const paths = { 'cached read': READ, 'cached account overview': OVERVIEW };

/** The worker as it is deployed, in one workerd: with the objects of its accounts, and with the isolate's memory alone. */
export async function benchWorkerd(): Promise<void> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts', core: 1 });
  console.log(
    `\n| one workerd, ${ACCOUNTS} accounts, ${SECONDS} s | answers a second | p50, ms | p99, ms | µs of CPU |`,
  );
  console.log('| --- | --- | --- | --- | --- |');
  for (const hasObjects of [false, true]) await measure(upstream.url, hasObjects);
  await upstream.stop();
}

async function measure(upstream: string, hasObjects: boolean): Promise<void> {
  const worker = await startWorkerd({ upstream, objects: hasObjects ? 'Account' : undefined });
  const load = { urls: [worker.url], accounts: ACCOUNTS, connections: CONNECTIONS };
  for (const [what, path] of Object.entries(paths)) {
    await fleetLoad({ ...load, path, seconds: 0 }, 1);
    await fleetLoad({ ...load, path, seconds: WARM_SECONDS }, 1);
    const before = worker.cpuUs();
    const { rate, answers, p50, p99, failed } = await fleetLoad({ ...load, path, seconds: SECONDS }, 1);
    if (failed > answers / 100) throw new Error(`${failed} of ${answers} answers were not 200`);
    const figures = [Math.round(rate), p50.toFixed(1), p99.toFixed(1), Math.round((worker.cpuUs() - before) / answers)];
    console.log(
      `| ${what}, ${hasObjects ? 'an object an account' : "the isolate's memory"} | ${figures.join(' | ')} |`,
    );
  }
  await worker.stop();
}
