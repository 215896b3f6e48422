import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { stream } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';
import { violationsOf } from './axe.ts';
import { openPage, withChromium } from './browser.ts';

const OVERVIEW = '/bff/v1/account-overview';
const SCREENSHOTS = 'test-output/screenshots';

const openContext = withChromium();
let world: World;
let noise: string[];

beforeEach(async () => {
  noise = [];
  world = await openWorld({ SLOW_MS: '500' }, { hasAdmin: true });
  world.answerAll();
});

afterEach(() => {
  expect(noise).toEqual([]);
});

async function openConsole(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await openContext({ reducedMotion: 'reduce', ...options });
  context.on('weberror', (error) => noise.push(String(error.error().stack)));
  context.on('console', (message) => {
    // A violation of the policy is an error too. That the gateway has gone, or refuses, is what tests are about.
    const isOrdered = /net::ERR_|status of 503/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !isOrdered) noise.push(message.text());
  });
  return openPage(context, `${world.gateway.adminUrl}/console`);
}

async function visit(options: BrowserContextOptions = {}): Promise<Page> {
  const page = await openConsole(options);
  await page.getByText('Live, once a second').waitFor();
  return page;
}

/** An overview of which one section is late by 700 ms, and another by 200. */
async function slowOverview(id = 'the-slow-one') {
  const [held, soon] = [barrier(), barrier()];
  world.upstream.once(callOf('getReferralConfig'), reply(hold(soon), json(200, bodyOf('getReferralConfig', 1))));
  world.upstream.once(
    callOf('listNotifications'),
    reply(hold(held), json(200, bodyOf('listNotifications', '<img src=x onerror=alert(1)>'))),
  );
  const headers = { 'X-Request-Id': id };
  const asked = world.call({ path: OVERVIEW, token: world.token, headers });
  await Promise.all([held.reached, soon.reached]);
  const underWay = async () =>
    /^portico_upstream_calls_under_way (.+)$/m.exec((await world.admin({ path: '/metrics' })).text)?.[1];
  await expect.poll(underWay).toBe('2');
  world.advance(0.2);
  soon.release();
  await expect.poll(underWay).toBe('1');
  world.advance(0.5);
  held.release();
  await asked;
}

/** Something in each part of the page. What is under way is ended by the test's end. */
async function everything() {
  world.upstream.on(callOf('getReferralConfig'), json(500, ''));
  const failing = secret();
  for (let calls = 0; calls < 20; calls++) await world.ask('getReferralConfig', { token: failing });
  world.upstream.on(callOf('purchasePlan'), json(500, ''));
  await world.ask('purchasePlan', { headers: { 'X-Request-Id': 'the-purchase' } });
  await slowOverview();
  const held = barrier();
  world.upstream.on(callOf('listTransactions'), reply(hold(held), json(200, bodyOf('listTransactions', 1))));
  const waiting = world.ask('listTransactions', { token: secret() });
  onTestFinished(async () => {
    held.release();
    await waiting;
  });
  await held.reached;
}

/** Until then nothing new is told. */
const second = () => world.advance(1);

const overflow = (page: Page) => page.evaluate('document.documentElement.scrollWidth - innerWidth');

const rowOf = (page: Page, text: string) => page.locator('#ended-table > tbody > tr', { hasText: text });

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  test.each([360, 390, 1280, 1600])('axe-core finds nothing, and nothing is cut off, at %i px', async (width) => {
    const options = { colorScheme, viewport: { width, height: 900 } };
    const page = await visit(options);
    const name = `${SCREENSHOTS}/console-${colorScheme}-${width}`;
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    await everything();
    const isPlotted = async () => {
      second();
      return page.locator('.legend .value').first().innerText();
    };
    await expect.poll(isPlotted).toMatch(/\d/);
    await rowOf(page, 'getAccountOverview').locator('button').click();
    await page.getByText('from its start').waitFor();
    await page.getByText('Open for one account').waitFor();
    await page.screenshot({ path: `${name}.png`, fullPage: true });
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
  });
});

test('what was slow says which leg, and what for', async () => {
  const page = await visit();
  await slowOverview();
  second();
  await rowOf(page, 'getAccountOverview').locator('button').click();
  const detail = page.locator('.waterfall');
  await expect
    .poll(() => detail.locator('.verdict').innerText())
    .toMatch(/^It took 700 ms\. The slowest leg is notifications, and most of its time went to attempt, 700 ms/);
  const [first] = await detail.locator('th[scope=rowgroup]').allInnerTexts();
  expect(first).toContain('notifications, the slowest: 700 ms');
});

test('a part of each of its plots and tables is there', async () => {
  const page = await visit();
  await everything();
  second();
  await page.getByText('open: for one account').waitFor();
  expect(await page.locator('figure').count()).toBe(9);
  expect(await page.locator('figure canvas').count()).toBe(9);
  await expect.poll(() => page.locator('#under-way-table').innerText()).toContain('listTransactions');
  expect(await page.locator('#unknown-table').innerText()).toContain('the-purchase');
  expect(await page.locator('#accounts-table').innerText()).toMatch(/\d/);
});

test('while a request is open newer ones wait, and it stays where it is', async () => {
  const page = await visit();
  await slowOverview('the-first');
  second();
  const button = rowOf(page, 'getAccountOverview').locator('button');
  await button.click();
  await world.call({ path: OVERVIEW, token: world.token, headers: { 'Cache-Control': 'no-cache' } });
  world.upstream.on(callOf('getSubscription'), json(500, ''));
  await world.ask('getSubscription', { headers: { 'Cache-Control': 'no-cache' } });
  second();
  await page.getByText('1 newer wait').waitFor();
  expect(await button.and(page.locator(':focus')).count()).toBe(1);
  await button.click();
  await rowOf(page, 'getSubscription').waitFor();
});

test('the list can be filtered and sorted', async () => {
  const page = await visit();
  await slowOverview();
  world.upstream.on(callOf('getSubscription'), json(500, ''));
  await world.ask('getSubscription', { headers: { 'Cache-Control': 'no-cache' } });
  second();
  const names = () => page.locator('#ended-table > tbody th').allInnerTexts();
  await expect.poll(names).toEqual(['getSubscription', 'getAccountOverview']);
  await page.getByRole('button', { name: 'Took' }).click();
  expect(await names()).toEqual(['getAccountOverview', 'getSubscription']);
  expect(await page.getByRole('columnheader', { name: 'Took' }).first().getAttribute('aria-sort')).toBe('descending');
  await page.getByLabel('Show only those with').fill('error of its own');
  expect(await names()).toEqual(['getSubscription']);
  await page.getByLabel('Show only those with').fill('nothing like this');
  await page.getByText('None of them has that.').waitFor();
});

test('paused it stands still, and goes on with what was missed', async () => {
  const page = await visit();
  await page.getByRole('button', { name: 'Pause' }).click();
  await slowOverview();
  second();
  await page.getByText('Paused.').waitFor();
  await page.waitForTimeout(200); // nothing is to happen
  expect(await rowOf(page, 'getAccountOverview').count()).toBe(0);
  await page.getByRole('button', { name: 'Pause' }).click();
  await rowOf(page, 'getAccountOverview').waitFor();
});

test('it says when the process has stopped', async () => {
  const page = await visit();
  await world.gateway.close();
  await page.getByText('The process has stopped.').waitFor();
  expect(await violationsOf(page)).toEqual([]);
});

test('it says when it is one page too many, and begins when there is room', async () => {
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const watching = { path: '/console/events', signal: left.signal };
  for (let page = 0; page < 8; page++) await stream(world.gateway.adminUrl ?? '', watching);
  const page = await openConsole();
  await page.getByText('eight others watch it already').waitFor();
  left.abort();
  await page.getByText('Live, once a second').waitFor();
});

test('with the keyboard alone one gets everywhere, and sees where one is', async () => {
  const page = await visit();
  await everything();
  second();
  await rowOf(page, 'getAccountOverview').waitFor();
  const reached = new Set<string>();
  const focused = `(({ activeElement: at, body }) => {
    if (at === body) return null;
    const { outlineStyle, outlineWidth } = getComputedStyle(at);
    return [at.id || at.textContent.trim() || at.getAttribute('aria-labelledby'), outlineStyle + ' ' + outlineWidth];
  })(document)`;
  for (let presses = 0; presses < 120; presses++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate<[string, string] | null>(focused);
    if (at === null) break;
    expect(at[1]).toMatch(/^(?!none)\w+ [1-9]/);
    reached.add(at[0]);
  }
  const wanted = ['pause', 'Plots', 'filter', 'When', 'Took', 'getAccountOverview', 'listTransactions', 'more'];
  expect(wanted.filter((name) => !reached.has(name))).toEqual([]);
  const scrolled = await page.locator('.scroll').count();
  expect(scrolled).toBe(4);
  const button = rowOf(page, 'getAccountOverview').locator('button');
  await button.focus();
  await page.keyboard.press('Enter');
  await page.getByText('from its start').waitFor();
  expect(await button.getAttribute('aria-expanded')).toBe('true');
  await page.keyboard.press('Space');
  expect(await button.getAttribute('aria-expanded')).toBe('false');
});
