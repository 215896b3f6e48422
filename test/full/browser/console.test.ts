import type { BrowserContextOptions } from 'playwright-core';
import { expect, test } from 'vitest';
import { exampleRequest } from '../../support/examples.ts';
import { call } from '../../support/http.ts';
import { secret } from '../../support/secrets.ts';
import { answer } from '../../support/upstream.ts';
import { openGateway, openPage, violationsOf, withChromium } from './browser.ts';

const openContext = withChromium();

/** The console of a gateway. What the page complains of is noted. */
async function open(options: BrowserContextOptions = {}) {
  const noise: string[] = [];
  const world = await openGateway({ SLOW_MS: '500' }, true);
  const { gateway, upstream, clock } = world;
  const context = await openContext({ reducedMotion: 'reduce', ...options });
  context.on('weberror', (error) => noise.push(String(error.error().stack)));
  context.on('console', (message) => {
    const isOrdered = message.text().includes('net::ERR_'); // that the gateway has gone is what a test is about
    if (['error', 'warning'].includes(message.type()) && !isOrdered) noise.push(message.text());
  });
  const page = await openPage(context, `${gateway.adminUrl}/console`);
  await page.getByText('Live').waitFor();
  const ask = (request: { path: string; method?: string }, token = world.token, headers = {}) =>
    call(gateway.url, { ...request, token, headers });

  const metrics = async () => (await call(gateway.adminUrl ?? '', { path: '/metrics' })).text;

  /** An overview of which one section is late by 700 ms. */
  const slowOverview = async () => {
    const held = upstream.hold('listNotifications');
    const asked = ask({ path: '/bff/v1/account-overview' });
    await held.call;
    await expect.poll(metrics).toMatch(/^portico_upstream_calls_under_way 1$/m);
    clock.advance(700);
    held.release();
    await asked;
  };
  const rowOf = (text: string) => page.locator('#requests button', { hasText: text }).first();
  return { ...world, page, noise, ask, slowOverview, rowOf };
}

/** Something in each part of the page. */
async function everything({ ask, upstream, clock, slowOverview }: Awaited<ReturnType<typeof open>>) {
  await slowOverview();
  upstream.next('purchasePlan', answer(500));
  await ask(exampleRequest('purchasePlan'), secret(), { 'X-Request-Id': 'the-purchase' });
  upstream.next('getSubscription', ...Array.from({ length: 200 }, () => answer(500)));
  for (let calls = 0; calls < 30; calls++) await ask({ path: '/api/v2/subscription/' }, secret());
  clock.advance(2000);
}

test.for([
  ['light', 360],
  ['dark', 1280],
] as const)('axe-core finds nothing, and nothing is cut off, in %s colours at %i px', async ([colorScheme, width]) => {
  const world = await open({ colorScheme, viewport: { width, height: 900 } });
  const { page, noise, rowOf } = world;
  expect(await violationsOf(page)).toEqual([]);
  await everything(world);
  await page.getByText('Circuit open').waitFor();
  await page.getByText('the-purchase').waitFor();
  await expect.poll(() => page.locator('figure polyline:not([points=""])').count()).toBeGreaterThan(3);
  for (const isOpen of [false, true]) {
    if (isOpen) await rowOf('getAccountOverview').click();
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
  }
  expect(noise).toEqual([]);
});

test('with the keyboard alone one finds the leg that was slow, sees where one is, and comes back', async () => {
  const { page, noise, slowOverview, rowOf } = await open();
  await slowOverview();
  const row = rowOf('getAccountOverview');
  await row.waitFor();
  const focused = row.and(page.locator(':focus'));
  for (let presses = 0; presses < 4 && (await focused.count()) === 0; presses++) await page.keyboard.press('Tab');
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
  expect(await focused.count()).toBe(1);
  await page.keyboard.press('Enter');
  const waterfall = page.getByRole('dialog', { name: 'getAccountOverview took 700 ms' });
  expect(await waterfall.innerText()).toMatch(
    /It waited for notifications\. Most of that: call of the upstream, 700 ms/,
  );
  await page.keyboard.press('Escape');
  expect([await waterfall.count(), await focused.count(), noise]).toEqual([0, 1, []]);
});

test('good requests are shown where they are asked for, and that the gateway does not answer is said', async () => {
  const { page, gateway, ask, rowOf, noise } = await open();
  await ask({ path: '/api/v2/referral/config/' });
  const row = rowOf('getReferralConfig');
  await row.waitFor({ state: 'attached' });
  expect(await row.isVisible()).toBe(false);
  await page.getByLabel('Show good ones').check();
  expect(await row.isVisible()).toBe(true);
  await gateway.close();
  await page.getByText('The gateway does not answer.').waitFor();
  expect([await violationsOf(page), noise]).toEqual([[], []]);
});
