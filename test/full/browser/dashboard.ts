import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { RecordedCall } from '../../../sandbox/src/calls.ts';
import type { FaultInput } from '../../../sandbox/src/faults.ts';
import { openPage, withChromium } from './browser.ts';

/** Installing and building the page on a busy machine takes its time. */
const START_MS = 300_000;

/** `npm run example`, as somebody starts it who has a terminal, and ends it with Ctrl-C. */
async function startExample() {
  // A group of its own, as a terminal's: npm, the script and all that it has started.
  const child = spawn('npm', ['run', 'example'], { env: { ...process.env, EXAMPLE_PORT: '0' }, detached: true });
  const closed = once(child, 'close'); // none of the group has its output open any more
  const interrupt = () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGINT'));
  process.once('exit', interrupt);
  let said = '';
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const hear = (text: string) => {
    said += text;
    const [, address] = /The page is at (http:\S+)/.exec(said) ?? [];
    if (address !== undefined) resolve(address);
  };
  child.stdout.setEncoding('utf8').on('data', hear);
  child.stderr.setEncoding('utf8').on('data', hear);
  void closed.then(() => {
    process.off('exit', interrupt);
    reject(new Error(`npm run example has ended.\n${said}`));
  });
  const end = () => {
    interrupt();
    return closed;
  };
  return { url: await promise, end };
}

interface Visit extends BrowserContextOptions {
  /** Statuses of answers that a test has ordered: the browser writes a line on its console about each. */
  readonly failing?: readonly number[];
}

/** `npm run example` for all tests of a file, each of which fails if its pages have written errors on their consoles. */
export function withDashboard() {
  const openContext = withChromium();
  let example: Awaited<ReturnType<typeof startExample>>;
  let noise: string[] = [];
  beforeAll(async () => void (example = await startExample()), START_MS);
  afterAll(async () => void (await example.end()));
  afterEach(() => {
    const heard = noise;
    noise = [];
    expect(heard).toEqual([]);
  });

  /** Somebody who comes to the page for the first time. */
  async function visit({ failing = [], ...options }: Visit = {}): Promise<Page> {
    const context = await openContext({ locale: 'en-US', timezoneId: 'UTC', ...options });
    const isOrdered = new RegExp(`^Failed to load resource: .* status of (${failing.join('|')}) `);
    context.on('weberror', (error) => noise.push(String(error.error().stack)));
    context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !isOrdered.test(message.text()))
        noise.push(`${message.location().url}: ${message.text()}`);
    });
    return openPage(context, example.url);
  }

  const json = (path: string, body: object, headers = {}) => {
    const all = { 'Content-Type': 'application/json', ...headers };
    return fetch(example.url + path, { method: 'POST', headers: all, body: JSON.stringify(body) });
  };

  return {
    visit,
    /** Somebody who has another key of an account, of which the gateway has no copies, and signs in with it. */
    visitAs: async (account: string, options: Visit = {}) => {
      const [page, answer] = await Promise.all([
        visit(options),
        json('/api/v2/apikey/', {}, { Authorization: `Token sandbox-${account}-key` }),
      ]);
      const { key } = (await answer.json()) as { readonly key: string };
      await signInWith(page, key);
      return { page, key };
    },
    signInWith,
    /** The page in one more tab. */
    openTab: (beside: Page) => openPage(beside.context(), example.url),
    /** What the gateway answers to somebody who has that key. */
    read: async <T>(key: string, path: string): Promise<T> => {
      const headers = { Authorization: `Token ${key}`, 'Cache-Control': 'no-cache' };
      return (await (await fetch(example.url + path, { headers })).json()) as T;
    },
    /** The controls that the page's own switches use too. */
    sandbox: {
      fault: (fault: FaultInput) => json('/_sandbox/faults', fault),
      heal: () => fetch(`${example.url}/_sandbox/faults`, { method: 'DELETE' }),
      calls: async (operation: RecordedCall['operation'], account: string) => {
        const calls = (await (await fetch(`${example.url}/_sandbox/calls`)).json()) as readonly RecordedCall[];
        return calls.filter((one) => one.operation === operation && one.account === account).length;
      },
    },
  };
}

export const button = (within: Page | Locator, name: string): Locator =>
  within.getByRole('button', { name, exact: true });
export const heading = (page: Page, name: string): Locator => page.getByRole('heading', { name, exact: true });
/** A part of the page, by its title. */
export const partOf = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true });

/** Resolves when nothing is being read, and the sandbox is as the switches say. */
export const settled = (page: Page): Promise<void> =>
  expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0);

async function signInWith(page: Page, key: string): Promise<void> {
  await page.getByLabel('Another key').fill(key);
  await button(page, 'Sign in').click();
  await heading(page, 'Your account').waitFor();
  await settled(page);
}

/** Turns a switch, and resolves when the sandbox knows. */
export async function turn(page: Page, name: string): Promise<void> {
  await page.getByRole('switch', { name, exact: true }).click();
  await settled(page);
}
