import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import type { FaultInput } from '../../../sandbox/src/faults.ts';
import { launchChromium } from '../../browser/chromium.ts';
import { startExample } from '../../browser/example.ts';
import { median } from '../support/processes.ts';
import { startRelay } from '../support/relay.ts';

// Until the first data of a screen is painted, and until all of it is: by one call of ours and by five of the upstream's, and for
// the whole page of the example. The relay makes each round trip longer; the emulation of DevTools would only keep answers back
// that come sooner, and so hide what the upstream takes. The throughput it emulates well.

const RUNS = Number(process.argv[2] ?? 15);
const ROUND_TRIP_MS = 150;
const BYTES_PER_SECOND = 1_600_000 / 8;

const WAYS = {
  lines: 'one overview, as lines',
  json: 'one overview, as JSON',
  five: 'five calls',
  four: 'four calls, the card is looked up in the list',
} as const;

/** Of two faults that fit a call the sandbox takes the older one. */
const UPSTREAMS: Readonly<Record<string, readonly FaultInput[]>> = {
  'answers at once': [],
  'takes 100 ms': [{ operation: '*', delayMs: 100 }],
  'takes 100 ms, for the notifications 1 s': [
    { operation: 'listNotifications', delayMs: 1_000 },
    { operation: '*', delayMs: 100 },
  ],
};

/** Milliseconds from the beginning of the visit to the frame that shows the plan, for scripts. */
const PLAN_AT = `
  globalThis.planAt = new Promise((resolve) => {
    const look = () => {
      const titles = [...document.querySelectorAll('section[aria-busy=false] h2')];
      if (titles.some(({ textContent }) => textContent === 'Plan')) requestAnimationFrame(resolve);
    };
    new MutationObserver(look).observe(document, { attributes: true, childList: true, subtree: true });
  })`;

/** In milliseconds, one for each column. */
type Times = readonly number[];

await using example = await startExample();
const relay = await startRelay(Number(new URL(example.url).port));
const url = `http://127.0.0.1:${relay.port}`;
const browser = await launchChromium();
const context = await browser.newContext();
try {
  await context.addInitScript(PLAN_AT);
  const page = await signedIn(context);
  const loader = await openLoader();
  console.log(`Medians of ${RUNS}, in ms. A round trip takes ${ROUND_TRIP_MS} ms, and 1.6 Mbit/s pass.`);
  for (const [upstream, faults] of Object.entries(UPSTREAMS)) {
    await order(faults);
    console.log(`\n| the upstream ${upstream} | first data | all |\n| --- | --- | --- |`);
    for (const [way, name] of Object.entries(WAYS)) report(name, await timesOf(() => load(loader, way)));
  }
  await order([]);
  await loader.close(); // a page behind another one draws nothing
  console.log('\n| the page of the example | the plan |\n| --- | --- |');
  report('a first visit', await timesOf(firstVisit));
  report('a later one', await timesOf(() => open(page)));
} finally {
  await browser.close();
  await relay.close();
}

/** A page from which one has signed in, with the network as it is from here on. */
async function signedIn(of: BrowserContext): Promise<Page> {
  const first = await of.newPage();
  await first.goto(url);
  await first.getByRole('button', { name: 'Affiliate' }).click();
  await first.evaluate('planAt');
  relay.distance = { ms: ROUND_TRIP_MS };
  await throttle(first);
  return first;
}

/** Our own page on the origin of the example, so that it has the session. */
async function openLoader(): Promise<Page> {
  const loader = await context.newPage();
  await loader.route('**/*', (route) => route.fulfill({ path: join(import.meta.dirname, 'page.html') }));
  await loader.goto(url);
  await loader.unrouteAll();
  await throttle(loader);
  return loader;
}

async function throttle(one: Page): Promise<void> {
  const devtools = await one.context().newCDPSession(one);
  const throughput = { downloadThroughput: BYTES_PER_SECOND, uploadThroughput: BYTES_PER_SECOND };
  await devtools.send('Network.enable');
  await devtools.send('Network.emulateNetworkConditions', { offline: false, latency: 0, ...throughput });
}

async function order(faults: readonly FaultInput[]): Promise<void> {
  await fetch(`${example.url}/_sandbox/faults`, { method: 'DELETE' });
  for (const fault of faults) {
    await fetch(`${example.url}/_sandbox/faults`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...fault, times: 1_000_000 }),
    });
  }
}

function load(loader: Page, way: string): Promise<Times> {
  return loader.evaluate<Times>(`load('${way}')`);
}

async function open(one: Page): Promise<Times> {
  await one.goto(url);
  return [await one.evaluate<number>('planAt')];
}

/** By a browser that has nothing of the page, but the session. */
async function firstVisit(): Promise<Times> {
  const fresh = await browser.newContext({ storageState: await context.storageState() });
  await fresh.addInitScript(PLAN_AT);
  const one = await fresh.newPage();
  await throttle(one);
  const times = await open(one);
  await fresh.close();
  return times;
}

/** The first one opens the connections. */
async function timesOf(act: () => Promise<Times>): Promise<readonly Times[]> {
  await act();
  const times: Times[] = [];
  while (times.length < RUNS) times.push(await act());
  return times;
}

function report(name: string, times: readonly Times[]): void {
  const columns = times[0]?.map((_, column) => Math.round(median(times.map((one) => one[column] ?? Number.NaN))));
  console.log(`| ${name} | ${columns?.join(' | ')} |`);
}
