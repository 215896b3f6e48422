import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type Outcome, pace, percentile, type Wanted } from '../../../../bench/harness/client.ts';
import { type Metrics, scrape } from '../../../../bench/harness/metrics.ts';
import { type Running, start, startGateway } from '../../../../bench/harness/processes.ts';

/** Seconds that each outage lasts. */
const SECONDS = Number(process.argv[2] ?? 60);
const IS_LONG = SECONDS >= 30;
/** In a long run as long as the circuit looks back, so that it opens from a full window. */
const NORMAL_SECONDS = IS_LONG ? 12 : 2;
const MAX_RECOVERY_SECONDS = 10;
const TIMEOUT_MS = IS_LONG ? 5_000 : 1_000;
/** A short run is one of many steps on a machine that may be busy: it looks at what is done, not at how fast. */
const BOUNDS = IS_LONG ? { p99Ms: 50, recoverySeconds: 6 } : { p99Ms: 2_000, recoverySeconds: 10 };
/** Of the calls that it would be without a retry: one for a read, four for an overview. */
const MAX_CALLS_SHARE = 1.1;
const CALLS_OF_OVERVIEW = 4;

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
  ['connections refused', 'refuse'],
  ['503 to all', 'unavailable'],
  ['hangs', 'hang'],
] as const;

type What = 'read' | 'cold read' | 'overview';
type Answer = Outcome & { readonly what: What; readonly isStale: boolean };

/** Seven reads of accounts that have a copy, two of accounts that have none, one overview. */
function wantedOf(n: number): { what: What; wanted: Wanted } {
  const account = `account-${Math.floor(Math.random() * ACCOUNTS)}`;
  if (n % 10 < 7) return { what: 'read', wanted: { path: READ, account } };
  if (n % 10 < 9) return { what: 'cold read', wanted: { path: READ, account: `cold-${n}` } };
  return { what: 'overview', wanted: { path: OVERVIEW, account } };
}

function answerOf(what: What, outcome: Outcome): Answer {
  const { status, cacheStatus, text } = outcome;
  if (what !== 'overview') return { ...outcome, what, isStale: cacheStatus.includes('ttl=-') };
  const isPartial = status === 200 && !text.includes('"complete":true');
  return { ...outcome, what, status: isPartial ? 206 : status, isStale: text.includes('"state":"stale"') };
}

/** Prints the rows of a table, and gives back what is out of bounds. */
async function suffer(mode: string): Promise<readonly string[]> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts' });
  const env = { UPSTREAM_BASE_URL: upstream.url, UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS), CACHE_POLICY: POLICY };
  const gateway = await startGateway({ env });
  const client = new Client(gateway.url, 2_000);
  try {
    return await observe(client, { upstream, urls: [gateway.url, gateway.admin] }, mode);
  } finally {
    await client.close();
    await Promise.all([gateway.stop(), upstream.stop()]);
  }
}

interface Stage {
  readonly upstream: Running;
  /** The public listener's and the admin's. */
  readonly urls: readonly [string, string];
}

async function observe(client: Client, { upstream, urls }: Stage, mode: string): Promise<readonly string[]> {
  const [, admin] = urls;
  await prime(client);
  const answers: Answer[] = [];
  let sent = 0;
  const send = (at: number) => {
    const { what, wanted } = wantedOf(sent++);
    void client.send(wanted, at).then((outcome) => answers.push(answerOf(what, outcome)));
  };
  const load = (seconds: number) => pace({ rate: RATE, seconds }, send);
  const stopProbing = probe(urls);

  await load(NORMAL_SECONDS);
  const before = await scrape(admin);
  await upstream.ask({ mode });
  const failedAt = performance.now();
  const opening = untilOpen(admin, failedAt + SECONDS * 1_000);
  await load(SECONDS);
  const after = await scrape(admin);
  await upstream.ask({ mode: 'well' });
  const backAt = performance.now();
  for (let second = 0; second < MAX_RECOVERY_SECONDS; second++) {
    await load(1);
    const old = answers.filter(({ at }) => at < performance.now() - 1_000); // all of these are there, or soon too late
    if (goodSecond(old, backAt) < Infinity) break;
  }
  await client.settled(TIMEOUT_MS + 5_000);

  const [openAt, probes] = [await opening, await stopProbing()];
  const grew = (name: string, label: string) => after.sum(name, label) - before.sum(name, label);
  const during = answers.filter(({ at }) => at >= failedAt && at < backAt);
  const some = (what: What) => during.filter((answer) => answer.what === what);
  const share = (operations: readonly string[], requests: number) => {
    const calls = operations.map((id) => grew('portico_upstream_calls_total', `operation="${id}"`));
    return calls.reduce((sum, many) => sum + many, 0) / requests;
  };
  const perRead = share(OF_READS, during.length - some('overview').length);
  const perOverview = share(OF_OVERVIEWS, some('overview').length);
  const times = during.filter(({ at }) => at >= openAt).map(({ ms }) => ms);
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
  const badProbes = probes.filter((one) => !one.endsWith(' 200'));
  const recoveredAfter = goodSecond(answers, backAt);
  const areCallsFew = perRead <= MAX_CALLS_SHARE && perOverview <= CALLS_OF_OVERVIEW * MAX_CALLS_SHARE;
  const rows = [
    ['circuit open after', `${((openAt - failedAt) / 1_000).toFixed(1)} s`, openAt < backAt],
    ['upstream calls', `${perRead.toFixed(2)} a read, ${perOverview.toFixed(2)} an overview`, areCallsFew],
    ['upstream calls a request', (grew('portico_upstream_calls_total', '') / during.length).toFixed(2), true],
    ['reads of accounts that have a copy', tally(some('read')), true],
    ['p50 and p99 once open', `${p50.toFixed(1)} and ${p99.toFixed(1)} ms`, p99 < BOUNDS.p99Ms],
    ['/livez and /readyz', `${probes.length} probes, not 200: [${badProbes.join(', ')}]`, badProbes.length === 0],
    ['all 200 and fresh again after', `${recoveredAfter} s`, recoveredAfter <= BOUNDS.recoverySeconds],
  ] as const;
  for (const [what, value, isWithin] of rows) console.log(`| ${what} | ${value}${isWithin ? '' : ' **BROKEN**'} |`);
  return rows.filter(([, , isWithin]) => !isWithin).map(([what]) => what);
}

/** Every account gets its copies; a few at a time, since none may be turned away. */
async function prime(client: Client): Promise<void> {
  for (let place = 0; place < ACCOUNTS; place++) {
    const account = `account-${place}`;
    const outcomes = await Promise.all([READ, OVERVIEW].map((path) => client.send({ path, account })));
    if (outcomes.some(({ status }) => status !== 200)) throw new Error('could not be primed');
  }
}

const isOpen = (metrics: Metrics) => metrics.sum('portico_circuit_open') === 1;

/** When the circuit was seen open. */
async function untilOpen(admin: string, endAt: number): Promise<number> {
  for (; performance.now() < endAt; await sleep(LOOK_MS)) if (isOpen(await scrape(admin))) return performance.now();
  return Infinity;
}

/** Asks each listener whether it lives and whether it is ready, all the time. */
function probe(urls: readonly string[]): () => Promise<readonly string[]> {
  const paths = urls.flatMap((base) => [`${base}/livez`, `${base}/readyz`]);
  const answers: string[] = [];
  const over = new AbortController();
  const look = async (url: string) => {
    const status = await fetch(url).then((answer) => answer.arrayBuffer().then(() => answer.status), String);
    answers.push(`${url} ${status}`);
  };
  const asking = (async () => {
    for (; !over.signal.aborted; await sleep(LOOK_MS)) for (const url of paths) await look(url);
  })();
  return async () => {
    over.abort();
    await asking;
    return answers;
  };
}

/** The first second since then with many answers, all of them 200 and fresh. */
function goodSecond(answers: readonly Answer[], since: number): number {
  const later = answers.filter(({ at }) => at >= since);
  const isGood = (all: readonly Answer[]) =>
    all.length >= RATE / 2 && all.every(({ status, isStale }) => status === 200 && !isStale);
  const seconds = Map.groupBy(later, ({ at }) => Math.floor((at - since) / 1_000));
  return Math.min(...[...seconds].filter(([, all]) => isGood(all)).map(([second]) => second));
}

function tally(some: readonly Answer[]): string {
  const kinds = Map.groupBy(some, ({ status, isStale }) =>
    status !== 200 ? `${status}` : isStale ? 'stale' : 'fresh',
  );
  const shares = [...kinds].map(([kind, all]) => `${((all.length / some.length) * 100).toFixed(1)} % ${kind}`);
  return `of ${some.length}: ${shares.join(', ')}`;
}

const broken: string[] = [];
for (const [name, mode] of OUTAGES) {
  console.log(`\n| upstream: ${name}, ${SECONDS} s at ${RATE} requests a second | |\n| --- | --- |`);
  broken.push(...(await suffer(mode)).map((what) => `${name}: ${what}`));
}
console.log(broken.length > 0 ? `\nBROKEN: ${broken.join('; ')}` : '\nall within bounds');
process.exitCode = broken.length > 0 ? 1 : 0;
