import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual, parseArgs, promisify } from 'node:util';
import { startSandbox } from '../../../sandbox/src/node.ts';
import { allOperations } from '../../support/account-api.ts';
import { type Running, start } from '../support/processes.ts';

// What a day of an app costs, as curl counts it: 60 openings of a minute with two overviews on the screen, 12 changes by
// another device, half of them while the app is open, and three purchases of its own. Each way of asking plays the same day
// on a gateway and a sandbox of its own. BASE is a checkout of an older version, to be compared with.

const options = parseArgs({
  options: {
    openings: { type: 'string', default: '60' },
    /** How long each lasts, in seconds of the app. */
    seconds: { type: 'string', default: '60' },
    /** So many seconds of the app are one. A divisor of 30. */
    pace: { type: 'string', default: '30' },
  },
}).values;
const [OPENINGS = 0, OPEN = 0, PACE = 0] = [options.openings, options.seconds, options.pace].map(Number);

/** In seconds of the app. */
const EVERY = 10;
const WAIT = 30;
/** Of an opening. Each change comes a little later than the one before, somewhere between two questions. */
const CHANGE_AT = 0.35 * OPEN;
const WRITE_AT = 0.55 * OPEN;
/** What the sandbox's clock is set on by between two openings: 60 of them are a day. */
const IDLE_FOR_SANDBOX = 24 * 60;

const KEY = 'sandbox-paid-key';
const PURCHASE = '/api/v2/subscription/checkout/purchase/';
const COUNTERS = String.raw`\n%{http_code} %{size_header} %{size_download} %{size_request} %header{etag}`;

interface Way {
  readonly name: string;
  readonly isOlder?: boolean;
  readonly asksWhole?: boolean;
  /** Its copies are gone when the app is closed. */
  readonly forgets?: boolean;
  readonly changedSections?: boolean;
  readonly pageSize?: boolean;
  readonly compressed?: boolean;
  readonly waits?: boolean;
}

const WAYS: readonly Way[] = [
  { name: 'before, without ETags', isOlder: true, asksWhole: true },
  { name: 'before, copies end with the app', isOlder: true, forgets: true },
  { name: 'before, copies outlive the app', isOlder: true },
  { name: 'now, asked in the same way', forgets: true },
  { name: 'now, copies outlive the app' },
  { name: '+ `changed-sections`', changedSections: true },
  { name: '+ `page_size`', pageSize: true },
  { name: '+ compression', compressed: true },
  { name: '+ waiting', waits: true },
  { name: 'all of these', changedSections: true, pageSize: true, compressed: true, waits: true },
];

const run = promisify(execFile);
const until = (at: number) => sleep(Math.max(0, at - performance.now()));
const realMs = (seconds: number) => (seconds * 1_000) / PACE;

/** What one way has cost; and how long after another device's write was answered the change was seen, in milliseconds of the app. */
class Costs {
  requests = 0;
  up = 0;
  down = 0;
  news = 0;
  readonly seenMs: number[] = [];

  async curl(url: string, args: readonly string[]) {
    const { stdout } = await run('curl', ['-gsS', '-H', `Authorization: Token ${KEY}`, '-w', COUNTERS, ...args, url]);
    const end = stdout.lastIndexOf('\n');
    const [status = '', head, body, request, etag = ''] = stdout.slice(end + 1).split(' ');
    if (status !== '200' && status !== '304') throw new Error(`${url} was answered with ${status}: ${stdout}`);
    this.requests++;
    this.up += Number(request);
    this.down += Number(head) + Number(body);
    return { isNew: status === '200', etag, body: stdout.slice(0, end) };
  }
}

type Overview = Readonly<{ data: object; meta: { readonly unchanged?: readonly string[] } }>;

/** An overview on the app's screen. */
class Screen {
  readonly #url: string;
  readonly #way: Way;
  readonly #costs: Costs;
  #etag = '';
  #data: object = {};
  #asked: Promise<void> = Promise.resolve();
  #awaited: { readonly text: string; readonly at: number } | undefined;

  constructor(url: string, way: Way, costs: Costs) {
    this.#url = url;
    this.#way = way;
    this.#costs = costs;
  }

  /** One request after another. */
  ask(): Promise<void> {
    return (this.#asked = this.#asked.then(() => this.#ask()));
  }

  async #ask(): Promise<void> {
    const { changedSections, compressed, waits } = this.#way;
    const wishes = [changedSections && 'changed-sections', waits && `wait=${WAIT / PACE}`].filter(Boolean).join(', ');
    const headers =
      this.#etag === '' ? [] : [`If-None-Match: ${this.#etag}`, ...(wishes === '' ? [] : [`Prefer: ${wishes}`])];
    const args = [...headers.flatMap((header) => ['-H', header]), ...(compressed ? ['--compressed'] : [])];
    const sentAt = performance.now();
    const { isNew, etag, body } = await this.#costs.curl(this.#url, args);
    if (!isNew) return;
    const { data, meta } = JSON.parse(body) as Overview;
    this.#data = { ...(meta.unchanged && this.#data), ...data };
    if (!this.#way.asksWhole) this.#etag = etag;
    this.#costs.news++;
    this.#look(sentAt);
  }

  async stay(from: number): Promise<void> {
    if (this.#way.forgets) this.#etag = '';
    const end = from + realMs(OPEN);
    if (this.#way.waits) while (performance.now() < end) await this.ask();
    else
      for (let asked = 0; asked < OPEN / EVERY; asked++) {
        await until(from + realMs(asked * EVERY));
        await this.ask();
      }
    await until(end);
  }

  /** From now on counts the time until it shows this. */
  await(text: string): void {
    this.#awaited = { text, at: performance.now() };
    this.#look(0);
  }

  /** The pause before a question is scaled; what is under way takes as long as it takes. */
  #look(sentAt: number): void {
    if (!this.#awaited || !JSON.stringify(this.#data).includes(this.#awaited.text)) return;
    const ms = performance.now() - this.#awaited.at;
    const pauseMs = this.#way.waits ? 0 : Math.max(0, sentAt - this.#awaited.at);
    this.#costs.seenMs.push(ms - pauseMs + pauseMs * PACE);
    this.#awaited = undefined;
  }

  /** Whether it has shown each change, and shows what a whole read gives. */
  async isRight(): Promise<boolean> {
    await this.ask();
    const response = await fetch(this.#url, { headers: { Authorization: `Token ${KEY}` } });
    return !this.#awaited && isDeepStrictEqual(this.#data, ((await response.json()) as Overview).data);
  }
}

/** What another device does: changes the settings, or buys. Gives back what then shows it, and whether in both overviews. */
async function change(url: string, nth: number): Promise<{ readonly text: string; readonly isInBoth: boolean }> {
  const isInBoth = nth % 4 > 1;
  const email = `day-${nth}@wallet.example`;
  const path = isInBoth ? PURCHASE : '/api/v2/referral/config/';
  const response = await fetch(url + path, {
    method: isInBoth ? 'POST' : 'PATCH',
    headers: { Authorization: `Token ${KEY}`, 'Content-Type': 'application/json' },
    body: isInBoth ? order(nth) : JSON.stringify({ wallet_payout_email: email }),
  });
  const body = (await response.json()) as { readonly plan?: number };
  if (!response.ok) throw new Error(`a change was answered with ${response.status}: ${JSON.stringify(body)}`);
  return { text: isInBoth ? `"plan":${body.plan}` : email, isInBoth };
}

/** From credits while there are some, later by card: then the payment is completed while the app is closed. */
const order = (nth: number) =>
  JSON.stringify({ proxy_type: 'shared', proxy_countries: { US: 5 + nth }, term: 'monthly', recaptcha: 'solved' });

async function startGateway(way: Way, upstream: string): Promise<Running> {
  const policy = allOperations.flatMap(({ id, cache }) =>
    // Nothing is answered from an older copy: in a real day none is left when the app is opened.
    cache ? [[id, { fresh: cache.fresh / PACE, stale: 0, on_error: cache.onError }]] : [],
  );
  return start({
    script: join(way.isOlder ? (process.env['BASE'] ?? '') : '', 'src/entry/node.ts'),
    node: ['--import', new URL('../support/preload.ts', import.meta.url).href],
    env: {
      PORT: '0',
      ADMIN_PORT: '0',
      UPSTREAM_BASE_URL: upstream,
      RATE_LIMIT_PER_MINUTE: '1000000000',
      CACHE_POLICY: JSON.stringify(Object.fromEntries(policy)),
    },
  });
}

async function play(way: Way): Promise<Costs> {
  const upstream = await startSandbox();
  const gateway = await startGateway(way, upstream.url);
  const costs = new Costs();
  const pages = way.pageSize ? '?page_size[transactions]=5&page_size[pending_payments]=5' : '';
  const account = new Screen(`${gateway.url}/bff/v1/account-overview`, way, costs);
  const billing = new Screen(`${gateway.url}/bff/v1/billing-overview${pages}`, way, costs);

  const live = async (nth: number, from: number) => {
    if (nth % 10 === 2) {
      await until(from + realMs(CHANGE_AT + nth / 7));
      const { text, isInBoth } = await change(gateway.url, (nth - 2) / 5);
      account.await(text);
      if (isInBoth) billing.await(text);
    } else if (nth % 20 === 10) {
      await until(from + realMs(WRITE_AT));
      const headers = ['-H', `Idempotency-Key: ${crypto.randomUUID()}`, '-H', 'Content-Type: application/json'];
      await costs.curl(gateway.url + PURCHASE, [...headers, '-d', order(100 + nth)]);
      if (!way.waits) await Promise.all([account.ask(), billing.ask()]);
    }
  };

  for (let nth = 0; nth < OPENINGS; nth++) {
    if (nth % 10 === 7) await change(gateway.url, (nth - 2) / 5);
    const from = performance.now();
    await Promise.all([account.stay(from), billing.stay(from), live(nth, from)]);
    upstream.sandbox.advanceClock(IDLE_FOR_SANDBOX);
    await sleep(realMs(WAIT)); // then no copy is fresh any more, as after real idle time
  }
  const counted = Object.assign(new Costs(), costs); // without the last look
  if (!((await account.isRight()) && (await billing.isRight()))) throw new Error(`${way.name}: shows what is not so`);
  await gateway.stop();
  await upstream.close();
  return counted;
}

const ways = WAYS.filter(({ isOlder }) => !isOlder || process.env['BASE'] !== undefined);
console.log(
  `One second stands for ${PACE} of the app: how long copies are fresh, the ${EVERY} s from one question to the next, waits of ${WAIT} s, ` +
    `and the ${OPEN} s of an opening. Of idle time ${WAIT} s are left. What is asked and answered is the same.`,
);
const all = await Promise.all(ways.map(play));
const usual = all[ways.findIndex(({ forgets }) => forgets)];
const most = usual ? usual.up + usual.down : Number.NaN;
console.log(
  `| | requests | with data | bytes down | bytes up | × fewer bytes | a change is seen after |\n|${' --- |'.repeat(7)}`,
);
for (const [n, { requests, news, down, up, seenMs }] of all.entries()) {
  const { name = '', waits } = ways[n] ?? {};
  const worstMs = Math.max(...seenMs);
  const numbers = [requests, news, down, up].map((value) => value.toLocaleString('en')).join(' | ');
  console.log(`| ${name} | ${numbers} | ${(most / (up + down)).toFixed(1)} | ${(worstMs / 1_000).toFixed(2)} s |`);
  if (waits && worstMs > 2_000) process.exitCode = 1;
}
