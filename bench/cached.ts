import { load, median, type Running, start } from './processes.ts';

const ROUNDS = 5;
const SECONDS = 4;
const SERVER_CORE = 0;
const LOAD_CORE = 1;
const PATH = '/api/v2/subscription/';

interface Contender {
  readonly name: string;
  begin(upstream: string): Promise<Running>;
}

const gatewayEnv = (upstream: string) => ({
  PORT: '0',
  ADMIN_PORT: '0',
  RATE_LIMIT_PER_MINUTE: '1000000000', // counted, and never reached
  UPSTREAM_BASE_URL: upstream,
  CACHE_POLICY: '{"getSubscription":{"fresh":3600}}',
});

const contenders: readonly Contender[] = [
  {
    name: 'bare node:http, same headers',
    begin: () => start({ script: 'bench/contenders/bare.ts', core: SERVER_CORE }),
  },
  {
    name: 'Portico, its access log included',
    begin: (upstream) => start({ script: 'src/entry/node.ts', env: gatewayEnv(upstream), core: SERVER_CORE }),
  },
];

/** Cached reads of about 1.2 KB: interleaved rounds, a fresh process each, medians, one core each for server and load. */
export async function benchCached(): Promise<void> {
  const upstream = await start({ script: 'bench/contenders/upstream.ts', core: LOAD_CORE });
  const rates = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const contender of contenders) rates.get(contender.name)?.push(await measure(contender, upstream.url));
  }
  await upstream.stop();
  const bare = median(rates.get(contenders[0]?.name ?? '') ?? []);
  console.log(`\n| cached read, ${SECONDS} s × ${ROUNDS} rounds | answers a second | of bare |\n| --- | --- | --- |`);
  for (const [name, all] of rates) {
    console.log(`| ${name} | ${Math.round(median(all))} | ${(median(all) / bare).toFixed(2)} |`);
  }
}

async function measure(contender: Contender, upstream: string): Promise<number> {
  const server = await contender.begin(upstream);
  const url = server.url + PATH;
  await load({ url, connections: 50, seconds: 1, core: LOAD_CORE });
  const { rate, failed } = await load({ url, connections: 50, seconds: SECONDS, core: LOAD_CORE });
  await server.stop();
  if (failed > 0) throw new Error(`${contender.name}: ${failed} answers were not 2xx`);
  return rate;
}
