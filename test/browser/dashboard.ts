import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { RecordedCall } from '../../sandbox/src/calls.ts';
import type { FaultInput } from '../../sandbox/src/faults.ts';
import { openPage, withChromium } from './browser.ts';
import { type Example, startExample } from './example.ts';

/** Installing and building the page on a busy machine takes its time. */
const START_MS = 300_000;

type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>;

interface Visit extends BrowserContextOptions {
  /** Statuses of answers that a test has ordered: the browser writes a line on its console about each. */
  readonly failing?: readonly number[];
}

/** `npm run example` for all tests of a file, each of which fails if its pages have written errors on their consoles. */
export function withDashboard() {
  const openContext = withChromium();
  let example: Example;
  let noise: string[] = [];
  beforeAll(async () => {
    example = await startExample();
  }, START_MS);
  afterAll(() => example[Symbol.asyncDispose]());
  afterEach(() => {
    const heard = noise;
    noise = [];
    expect(heard).toEqual([]);
  });

  /** Somebody who comes to the page for the first time. */
  async function visit({ failing = [], ...options }: Visit = {}): Promise<Page> {
    const context = await openContext({ locale: 'en-US', timezoneId: 'UTC', ...options });
    const isOrdered = new RegExp(
      `^Failed to load resource: the server responded with a status of (${failing.join('|')}) `,
    );
    context.on('weberror', (error) => noise.push(String(error.error().stack)));
    context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !isOrdered.test(message.text()))
        noise.push(`${message.location().url}: ${message.text()}`);
    });
    return openPage(context, example.url);
  }

  /** Of one session each: a gateway counts sign-ins. */
  const sessions = new Map<string, Cookies>();

  /** Somebody who has signed in before as one of the sandbox's accounts. */
  async function visitAs(name: string, options: Visit = {}): Promise<Page> {
    const page = await visit(options);
    const cookies = sessions.get(name);
    if (cookies === undefined) {
      await signIn(page, name);
      sessions.set(name, await page.context().cookies());
    } else {
      await page.context().addCookies([...cookies]);
      await page.reload();
      await signedIn(page);
    }
    return page;
  }

  return {
    visit,
    visitAs,
    /** The page in one more tab. */
    openTab: (beside: Page) => openPage(beside.context(), example.url),
    sandbox: sandboxOf(() => example.url),
    /** What the gateway answers to somebody who has that key. */
    read: async <T>(key: string, path: string): Promise<T> => {
      const headers = { Authorization: `Token ${key}`, 'Cache-Control': 'no-cache' };
      const answer = await fetch(example.url + path, { headers });
      return (await answer.json()) as T;
    },
    /** Another key of an account, of which the gateway has no copies. */
    newKey: async (key: string): Promise<string> => {
      const headers = { Authorization: `Token ${key}`, 'Content-Type': 'application/json' };
      const answer = await fetch(`${example.url}/api/v2/apikey/`, { method: 'POST', headers, body: '{}' });
      return ((await answer.json()) as { readonly key: string }).key;
    },
  };
}

/** The controls that the page's own switches use too. */
function sandboxOf(origin: () => string) {
  const url = (name: string) => `${origin()}/_sandbox/${name}`;
  const post = (name: string, body: object) =>
    fetch(url(name), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  return {
    fault: (fault: FaultInput) => post('faults', fault),
    heal: () => fetch(url('faults'), { method: 'DELETE' }),
    advance: (seconds: number) => post('clock', { advanceSeconds: seconds }),
    calls: async (operation: RecordedCall['operation'], account: string) => {
      const calls = (await (await fetch(url('calls'))).json()) as readonly RecordedCall[];
      return calls.filter((one) => one.operation === operation && one.account === account);
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

/** Signs in as one of the sandbox's accounts. */
export async function signIn(page: Page, name: string): Promise<void> {
  await button(page, name).click();
  await signedIn(page);
}

export async function signInWith(page: Page, key: string): Promise<void> {
  await page.getByLabel('Another key').fill(key);
  await button(page, 'Sign in').click();
  await signedIn(page);
}

async function signedIn(page: Page): Promise<void> {
  await heading(page, 'Your account').waitFor();
  await settled(page);
}

/** Turns a switch, and resolves when the sandbox knows. */
export async function turn(page: Page, name: string): Promise<void> {
  await page.getByRole('switch', { name, exact: true }).click();
  await settled(page);
}

/** Notes what an expression of the page is from now on, whenever something on the page changes. */
export async function record<T>(page: Page, expression: string): Promise<() => Promise<readonly T[]>> {
  await page.evaluate(`
    globalThis.recorded = [];
    new MutationObserver(() => recorded.push(${expression})).observe(document, {
      attributes: true, characterData: true, childList: true, subtree: true,
    })`);
  return () => page.evaluate<T[]>('recorded');
}
