import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';
import { violationsOf } from './axe.ts';
import { openPage, withChromium } from './browser.ts';

const OVERVIEW = '/bff/v1/account-overview';

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

async function visit(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await openContext({ reducedMotion: 'reduce', ...options });
  context.on('weberror', (error) => noise.push(String(error.error().stack)));
  context.on('console', (message) => {
    // A violation of the policy is an error too. That the gateway has gone is what a test is about.
    const isOrdered = message.text().includes('net::ERR_');
    if (['error', 'warning'].includes(message.type()) && !isOrdered) noise.push(message.text());
  });
  const page = await openPage(context, `${world.gateway.adminUrl}/console`);
  await page.getByText('Live').waitFor();
  return page;
}

/** An overview of which one section is late by 700 ms. */
async function slowOverview() {
  const held = barrier();
  const answer = json(200, bodyOf('listNotifications', '<img src=x onerror=alert(1)>'));
  world.upstream.once(callOf('listNotifications'), reply(hold(held), answer));
  const asked = world.call({ path: OVERVIEW, token: world.token });
  await held.reached;
  const metrics = async () => (await world.admin({ path: '/metrics' })).text;
  await expect.poll(metrics).toMatch(/^portico_upstream_calls_under_way 1$/m);
  world.advance(0.7);
  held.release();
  await asked;
}

/** Something in each part of the page. */
async function everything() {
  await slowOverview();
  world.upstream.on(callOf('purchasePlan'), json(500, ''));
  await world.ask('purchasePlan', { headers: { 'X-Request-Id': 'the-purchase' } });
  world.upstream.on(callOf('getSubscription'), json(500, ''));
  for (let calls = 0; calls < 30; calls++) await world.ask('getSubscription', { token: secret() });
  world.advance(2);
}

const rowOf = (page: Page, text: string) => page.locator('#requests button', { hasText: text }).first();

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  test.each([360, 1280])('axe-core finds nothing, and nothing is cut off, at %i px', async (width) => {
    const page = await visit({ colorScheme, viewport: { width, height: 900 } });
    expect(await violationsOf(page)).toEqual([]);
    await everything();
    await page.getByText('Circuit open').waitFor();
    await page.getByText('the-purchase').waitFor();
    await expect.poll(() => page.locator('figure polyline:not([points=""])').count()).toBeGreaterThan(3);
    for (const isOpen of [false, true]) {
      if (isOpen) await rowOf(page, 'getAccountOverview').click();
      expect(await violationsOf(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    }
  });
});

test('with the keyboard alone one finds the leg that was slow, sees where one is, and comes back', async () => {
  const page = await visit();
  await slowOverview();
  const row = rowOf(page, 'getAccountOverview');
  await row.waitFor();
  await page.keyboard.press('Tab');
  expect(await page.locator('#all:focus-visible').count()).toBe(1);
  for (let presses = 0; presses < 3 && (await row.and(page.locator(':focus')).count()) === 0; presses++)
    await page.keyboard.press('Tab');
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
  expect(await row.and(page.locator(':focus')).count()).toBe(1);
  await page.keyboard.press('Enter');
  const waterfall = page.getByRole('dialog', { name: 'getAccountOverview took 700 ms' });
  expect(await waterfall.innerText()).toContain(
    'It waited for notifications. Most of that: call of the upstream, 700 ms.',
  );
  expect(await waterfall.locator('h3').first().innerText()).toBe('notifications: 700 ms');
  await page.keyboard.press('Escape');
  expect(await waterfall.count()).toBe(0);
  expect(await row.and(page.locator(':focus')).count()).toBe(1);
});

test('good requests are shown where they are asked for', async () => {
  const page = await visit();
  await world.ask('getReferralConfig');
  await rowOf(page, 'getReferralConfig').waitFor({ state: 'attached' });
  expect(await rowOf(page, 'getReferralConfig').isVisible()).toBe(false);
  await page.getByText('None so far.').first().waitFor();
  await page.getByLabel('Show good ones').check();
  expect(await rowOf(page, 'getReferralConfig').isVisible()).toBe(true);
});

test('it says when the gateway does not answer', async () => {
  const page = await visit();
  await world.gateway.close();
  await page.getByText('The gateway does not answer.').waitFor();
  expect(await violationsOf(page)).toEqual([]);
});
