import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { launchChromium } from './chromium.ts';

/** A Chromium for all tests of a file. Resolves with an empty profile, whose pages share what one user's tabs do. */
export function withChromium(): (options?: BrowserContextOptions) => Promise<BrowserContext> {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  return async (options) => {
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    return context;
  };
}

export async function openPage(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

/** Calls a function of `page.html`, and resolves with what its promise does. */
export const run = <T = unknown>(page: Page, name: string, ...args: readonly unknown[]): Promise<T> =>
  page.evaluate<T>(`${name}(...${JSON.stringify(args)})`);

export const textOf = (page: Page): Promise<string> => page.locator('html').innerText();

/** Calls a function of `page.html` that leaves it, and resolves with where it led to and the text there. */
export async function leave(page: Page, name: string, ...args: readonly unknown[]) {
  const loaded = page.waitForEvent('load');
  await run(page, name, ...args);
  await loaded;
  return { url: page.url(), text: await textOf(page) };
}
