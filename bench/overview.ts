import { median, start } from './processes.ts';

const LEG_MS = 100;
const SAMPLES = 40;
const ROUNDTRIPS = 1.3;

/** Cold account overviews, one account each, against an upstream that takes 100 ms a call. */
export async function benchOverview(): Promise<void> {
  const upstream = await start({ script: 'bench/contenders/upstream.ts', args: [String(LEG_MS)], core: 1 });
  const env = { PORT: '0', ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url };
  const gateway = await start({ script: 'src/entry/node.ts', env, core: 0 });
  await fetch(`${gateway.url}/livez`); // the client's own first call is not what is measured
  await fetch(`${upstream.url}/api/v2/subscription/`);
  const times: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) times.push(await coldOverview(gateway.url, sample));
  await Promise.all([gateway.stop(), upstream.stop()]);
  const [first = Number.NaN, ...warm] = times;
  const typical = median(warm);
  console.log(
    `\n| cold account overview, every upstream call ${LEG_MS} ms | ms | of its slowest leg |\n| --- | --- | --- |`,
  );
  for (const [name, ms] of [
    ['median', typical],
    ['slowest', Math.max(...warm)],
    ['first after start', first],
  ] as const) {
    console.log(`| ${name} | ${ms.toFixed(1)} | ${(ms / LEG_MS).toFixed(2)} |`);
  }
  if (!(typical <= ROUNDTRIPS * LEG_MS)) throw new Error(`more than ${ROUNDTRIPS} round trips`);
}

async function coldOverview(url: string, sample: number): Promise<number> {
  const begunAt = performance.now();
  const response = await fetch(`${url}/bff/v1/account-overview`, {
    headers: { Authorization: `Token bench-${sample}` },
  });
  const { meta } = (await response.json()) as { meta: { complete: boolean } };
  if (!meta.complete) throw new Error('an incomplete overview');
  return performance.now() - begunAt;
}
