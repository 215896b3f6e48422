import { exampleInput } from '../test/support/examples.ts';
import { ALL_KEPT, NOTHING_KEPT, startContender, startGateway, startUpstream } from './harness/gateway.ts';
import { startNginx } from './harness/nginx.ts';
import { compare, type Contender, isComplete, isHit, type Pace } from './harness/rounds.ts';
import type { Load } from './harness/wrk.ts';

export const READ: Load = { path: '/api/v2/subscription/' };
const OVERVIEW: Load = { path: '/bff/v1/account-overview' };
/** Who take turns where one account alone would be too easy. */
export const ACCOUNTS = 1_000;
/** What is never kept. */
export const UNKEPT: Load = { path: exampleInput('getApiKey').path, accounts: ACCOUNTS };
const PURCHASE: Load = {
  path: exampleInput('purchasePlan').path,
  method: 'POST',
  body: '{"term":"monthly"}',
  headers: { 'Idempotency-Key': 'bench-{key}' },
  accounts: ACCOUNTS,
};

/** Portico beside the least that could do the same work, and beside others. */
export const cost = [cachedRead, cachedOverview, coldOverview, passThrough, purchase] as const;

async function cachedRead(pace: Pace): Promise<void> {
  const upstream = await startUpstream();
  const nginx = await startNginx(upstream.url);
  const servers = {
    'bare node:http': await startContender('bare'),
    Portico: await startGateway(upstream, ALL_KEPT),
    ...(nginx && { 'nginx proxy_cache': nginx }),
  };
  await compare({ title: 'cached read of 1.2 KB', contenders: asked(servers, READ, isHit), pace });
}

async function cachedOverview(pace: Pace): Promise<void> {
  const servers = { Portico: await startGateway(await startUpstream(), ALL_KEPT) };
  await compare({ title: 'overview of four cached sections', contenders: asked(servers, OVERVIEW, isComplete), pace });
}

async function coldOverview(pace: Pace): Promise<void> {
  const upstream = await startUpstream();
  const servers = {
    'bare dispatch and splicing': await startContender('splice', upstream),
    Portico: await startGateway(upstream, NOTHING_KEPT),
  };
  const load = { ...OVERVIEW, accounts: ACCOUNTS };
  await compare({ title: 'overview, nothing cached', contenders: asked(servers, load, isComplete), pace });
}

async function passThrough(pace: Pace): Promise<void> {
  const upstream = await startUpstream();
  const servers = {
    'bare dispatch': await startContender('dispatch', upstream),
    '@fastify/http-proxy': await startContender('fastify-http-proxy', upstream),
    'http-proxy-3': await startContender('http-proxy-3', upstream),
    Portico: await startGateway(upstream, ALL_KEPT),
  };
  await compare({ title: 'read that is never cached', contenders: asked(servers, UNKEPT), pace });
}

/** A process that has kept some 30,000 purchases for their day refuses more: of these there are never so many. */
async function purchase(pace: Pace): Promise<void> {
  const upstream = await startUpstream();
  const servers = {
    'bare dispatch': await startContender('dispatch', upstream),
    '@fastify/http-proxy': await startContender('fastify-http-proxy', upstream),
    Portico: await startGateway(upstream, ALL_KEPT),
  };
  const few = { rounds: Math.min(3, pace.rounds), seconds: 1, warmSeconds: 1 };
  await compare({ title: 'purchase with a key', contenders: asked(servers, PURCHASE), pace: few });
}

/** The same asked of each. */
function asked(
  servers: Readonly<Record<string, Contender['server']>>,
  load: Load,
  isRight?: Contender['isRight'],
): readonly Contender[] {
  return Object.entries(servers).map(([name, server]) => ({ name, server, load, ...(isRight && { isRight }) }));
}
