import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type Outcome, pace, type Wanted } from '../support/client.ts';
import { type Metrics, REFUSALS, scrape } from '../support/metrics.ts';
import { type Answer, goodSecond, report, type Seen, type What } from './report.ts';
import { type Running, start, startGateway } from '../support/processes.ts';

/** Seconds that each outage lasts. */
const SECONDS = Number(process.argv[2] ?? 60);
const IS_LONG = SECONDS >= 30;
/** In a long run as long as the circuit looks back, so that it opens from a full window. */
const NORMAL_SECONDS = IS_LONG ? 12 : 2;
const MAX_RECOVERY_SECONDS = 10;
const TIMEOUT_MS = IS_LONG ? 5_000 : 1_000;
/** A short run is one of many steps on a machine that may be busy: it looks at what is done, not at how fast. */
const BOUNDS = IS_LONG ? { p99Ms: 50, recoverySeconds: 6 } : { p99Ms: 2_000, recoverySeconds: 10 };

const RATE = 200;
const ACCOUNTS = IS_LONG ? 200 : 50;
const LOOK_MS = 200;

const READ = '/api/v2/payment/transaction/';
const OVERVIEW = '/bff/v1/account-overview';
/** Calls that only overviews make here, so that the two can be told apart in the gateway's own count. */
const OF_OVERVIEWS = [
  'getSubscription',
  'listPaymentMethods',
  'getPaymentMethod',
  'listNotifications',
  'getReferralConfig',
];
const OF_READS = ['listTransactions'];

/** Fresh for a second, then worth a call; a stale copy only where that fails. */
const POLICY = JSON.stringify(
  Object.fromEntries([...OF_READS, ...OF_OVERVIEWS].map((id) => [id, { fresh: 1, stale: 0, on_error: 3_600 }])),
);

const OUTAGES = [
  { name: 'connections refused', mode: 'refuse' },
  { name: '503 to all', mode: 'unavailable' },
  { name: 'hangs', mode: 'hang' },
] as const;

let [sent, cold] = [0, 0];

async function suffer(mode: (typeof OUTAGES)[number]['mode']): Promise<Seen> {
  const upstream = await start({ script: 'test/load/support/failing-upstream.ts' });
  const gateway = await startGateway({
    env: {
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS),
      CACHE_POLICY: POLICY,
    },
  });
  const client = new Client(gateway.url, 2_000);
  try {
    return await observe({ client, upstream, urls: [gateway.url, gateway.admin] }, mode);
  } finally {
    await client.close();
    await Promise.all([gateway.stop(), upstream.stop()]);
  }
}

interface Stage {
  readonly client: Client;
  readonly upstream: Running;
  /** The public listener's and the admin's. */
  readonly urls: readonly [string, string];
}

async function observe({ client, upstream, urls }: Stage, mode: string): Promise<Seen> {
  const [, admin] = urls;
  await prime(client);
  const answers: Answer[] = [];
  const send = (at: number) => {
    const { what, wanted } = next();
    void client.send(wanted, at).then((outcome) => answers.push(answerOf(what, outcome)));
  };
  const load = (seconds: number) => pace({ rate: RATE, seconds }, send);
  const probing = probe(urls);

  const [first, beganAt] = [await scrape(admin), performance.now()];
  await load(NORMAL_SECONDS);
  const before = await scrape(admin);
  const { received } = (await upstream.ask({ mode })) as { received: number };
  const failedAt = performance.now();
  const opening = untilOpen(admin, failedAt + SECONDS * 1_000);
  await load(SECONDS);
  const after = await scrape(admin);
  const told = (await upstream.ask({ mode: 'well' })) as { received: number };
  const backAt = performance.now();
  for (let second = 0; second < MAX_RECOVERY_SECONDS; second++) {
    await load(1);
    const old = answers.filter(({ at }) => at < performance.now() - 1_000); // all of these are there, or soon too late
    if (goodSecond(old, { since: backAt, least: RATE / 2 }) !== undefined) break;
  }
  await client.settled(TIMEOUT_MS + 5_000);

  const { openAt, metrics } = await opening;
  return {
    answers,
    beganAt,
    failedAt,
    openAt,
    backAt,
    recoveredAfter: goodSecond(answers, { since: backAt, least: RATE / 2 }) ?? Infinity,
    calls: {
      normal: sentBetween(first, before),
      untilOpen: sentBetween(before, metrics),
      all: sentBetween(before, after),
      reads: endedBetween(before, after, OF_READS),
      overviews: endedBetween(before, after, OF_OVERVIEWS),
      received: told.received - received,
    },
    refused: REFUSALS.map((by) => [by, refusedBetween(before, after, by)] as const).filter(([, many]) => many > 0),
    ...(await probing.stop()),
  };
}

/** Every account gets its copies; a few at a time, since none may be turned away. */
async function prime(client: Client): Promise<void> {
  for (let place = 0; place < ACCOUNTS; place++) {
    const account = `account-${place}`;
    const outcomes = await Promise.all([READ, OVERVIEW].map((path) => client.send({ path, account })));
    if (outcomes.some(({ status }) => status !== 200)) throw new Error('could not be primed');
  }
}

/** Attempts that have ended, those that found no connection included, and those that are under way. */
const attempts = (metrics: Metrics) =>
  metrics.sum('portico_upstream_calls_total') + metrics.sum('portico_upstream_calls_under_way');

const sentBetween = (before: Metrics, after: Metrics) => attempts(after) - attempts(before);

const endedOf = (metrics: Metrics, operations: readonly string[]) =>
  operations.reduce((sum, id) => sum + metrics.sum('portico_upstream_calls_total', `operation="${id}"`), 0);

const endedBetween = (before: Metrics, after: Metrics, operations: readonly string[]) =>
  endedOf(after, operations) - endedOf(before, operations);

const refusedBetween = (before: Metrics, after: Metrics, by: string) =>
  after.sum('portico_refused_total', `by="${by}"`) - before.sum('portico_refused_total', `by="${by}"`);

/** Seven reads of accounts that have a copy, two of accounts that have none, one overview. */
function next(): { what: What; wanted: Wanted } {
  const account = `account-${Math.floor(Math.random() * ACCOUNTS)}`;
  const turn = sent++ % 10;
  if (turn < 7) return { what: 'read', wanted: { path: READ, account } };
  if (turn < 9) return { what: 'cold read', wanted: { path: READ, account: `cold-${cold++}` } };
  return { what: 'overview', wanted: { path: OVERVIEW, account } };
}

function answerOf(what: What, { status, at, ms, cacheStatus, text }: Outcome): Answer {
  const isStale = what === 'overview' ? text.includes('"state":"stale"') : cacheStatus.includes('ttl=-');
  const isWhole = what !== 'overview' || status !== 200 || text.includes('"complete":true');
  return { what, status: isWhole ? status : 206, at, ms, isStale };
}

/** Looks until the circuit is open. */
async function untilOpen(admin: string, endAt: number): Promise<{ openAt: number; metrics: Metrics }> {
  for (;;) {
    const metrics = await scrape(admin);
    const now = performance.now();
    if (metrics.sum('portico_circuit_open') === 1) return { openAt: now, metrics };
    if (now >= endAt) return { openAt: Infinity, metrics };
    await sleep(LOOK_MS);
  }
}

/** Asks each listener whether it lives and whether it is ready, all the time. */
function probe(urls: readonly string[]) {
  const badProbes: string[] = [];
  const over = new AbortController();
  let probes = 0;
  const asking = (async () => {
    for (; !over.signal.aborted; await sleep(LOOK_MS)) {
      for (const url of urls.flatMap((base) => [`${base}/livez`, `${base}/readyz`])) {
        const status = await fetch(url).then(
          (answer) => answer.arrayBuffer().then(() => answer.status),
          () => 0,
        );
        probes++;
        if (status !== 200) badProbes.push(`${new URL(url).pathname}: ${status}`);
      }
    }
  })();
  return {
    async stop() {
      over.abort();
      await asking;
      return { badProbes, probes };
    },
  };
}

const broken: string[] = [];
for (const { name, mode } of OUTAGES) {
  const seen = await suffer(mode);
  console.log(`\n| upstream: ${name}, ${SECONDS} s at ${RATE} requests a second | |\n| --- | --- |`);
  broken.push(...report(seen, BOUNDS).map((what) => `${name}: ${what}`));
}
console.log(broken.length > 0 ? `\nBROKEN: ${broken.join('; ')}` : '\nall within bounds');
process.exitCode = broken.length > 0 ? 1 : 0;
