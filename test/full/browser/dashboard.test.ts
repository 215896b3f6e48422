import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { violationsOf } from './browser.ts';
import { button, heading, partOf, settled, turn, withDashboard } from './dashboard.ts';

const { visit, visitAs, signInWith, openTab, sandbox, read } = withDashboard();

const ENDED = 'Your session has ended. Please sign in again.';
const SECTIONS = ['Plan', 'Card', 'Notifications', 'Referrals'];
const SUBSCRIPTION = '/api/v2/subscription/';
const TRANSACTIONS = '/api/v2/payment/transaction/';
const CONFIG = '/api/v2/referral/config/';

const textOf = (page: Page, name: string) => partOf(page, name).innerText();
const expectText = (page: Page, name: string) => expect.poll(() => textOf(page, name));
const buy = (page: Page) => button(partOf(page, 'Buy a plan'), 'Buy');

async function readEverything(page: Page) {
  await button(page, 'Read everything again').click();
  await settled(page);
}

/** What is charged to an account: how often it was asked for, and what came of it. */
async function charged(account: string) {
  const key = `sandbox-${account}-key`;
  const { plan } = await read<{ plan: number }>(key, SUBSCRIPTION);
  const { count } = await read<{ count: number }>(key, TRANSACTIONS);
  return { asked: await sandbox.calls('purchasePlan', account), transactions: count, plan };
}

describe('who signs in', () => {
  test('sees plan, card, notifications, referrals, what they have earned, and transactions page by page', async () => {
    const { page, key } = await visitAs('paid');
    const { plan } = await read<{ plan: number }>(key, SUBSCRIPTION);
    await expectText(page, 'Plan').toContain(`No. ${plan}`);
    expect(await textOf(page, 'Card')).toContain('Visa ends in 4242');
    expect(await textOf(page, 'Notifications')).toContain('Your plan will be renewed soon');
    const { referral_code: code } = await read<{ referral_code: string }>(key, CONFIG);
    expect(await textOf(page, 'Referrals')).toContain(code);
    await partOf(page, 'Referral earnings').getByRole('img', { name: 'rising to' }).waitFor();
    const { count } = await read<{ count: number }>(key, TRANSACTIONS);
    const status = () => partOf(page, 'Transactions').getByRole('status').innerText();
    for (let shown = 10; shown < count; shown += 10) {
      await expect.poll(status).toBe(`${shown} of ${count}`);
      await button(partOf(page, 'Transactions'), 'Show more').click();
    }
    await expect.poll(status).toBe(`${count} of ${count}`);
  });
});

describe('a purchase', () => {
  test('by a double click is charged once, and a change that is made elsewhere is shown', async () => {
    const [{ page }, { page: other }] = [await visitAs('paid'), await visitAs('paid')];
    const before = await charged('paid');
    await buy(page).dblclick();
    await expectText(page, 'Buy a plan').toContain('You clicked 2 times and bought it once.');
    const after = await charged('paid');
    const plan = expect.any(Number) as number;
    expect(after).toEqual({ asked: before.asked + 1, transactions: before.transactions + 1, plan });
    expect(after.plan).not.toBe(before.plan);
    for (const one of [page, other]) await expectText(one, 'Plan').toContain(`No. ${after.plan}`);
  });

  test('that is cut off in the middle: the page finds out that it was bought, and it is charged once', async () => {
    const { page } = await visitAs('paid', { failing: [502] });
    await turn(page, 'Cut off in mid-purchase');
    const before = await charged('paid');
    await buy(page).click();
    await expectText(page, 'Buy a plan').toMatch(/the account shows it: plan \d+ is bought/);
    const after = await charged('paid');
    expect(after).toMatchObject({ asked: before.asked + 1, transactions: before.transactions + 1 });
    expect(await textOf(page, 'Buy a plan')).toContain(`plan ${after.plan} is bought`);
    await turn(page, 'Cut off in mid-purchase');
  });
});

describe('sections', () => {
  test('that fail say why, keep none of the others back, are tried again alone, and are there when they can be', async () => {
    const { page } = await visitAs('affiliate');
    await turn(page, 'Failing notifications');
    await expectText(page, 'Notifications').toContain('as of'); // the gateway keeps no older copy of them
    await readEverything(page);
    const failure = partOf(page, 'Notifications').getByRole('alert');
    expect(await failure.innerText()).toMatch(/upstream_unavailable.*request [\w-]+/s);
    for (const name of ['Plan', 'Card', 'Referrals']) expect(await textOf(page, name)).toMatch(/after [\d,]+ ms/);
    const asked: (string | null)[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).searchParams.get('sections')));
    await button(failure, 'Try again').click();
    await settled(page);
    expect(asked.filter((sections) => sections !== null)).toEqual(['notifications']);
    await turn(page, 'Failing notifications');
    await expectText(page, 'Notifications').toContain('Your plan will be renewed soon');
  });

  test('say of when they are while the upstream is down, under one banner, and all is well again by itself', async () => {
    const { page } = await visitAs('affiliate');
    await sandbox.fault({ operation: '*', status: 503, times: 1_000 });
    for (const name of SECTIONS) await expectText(page, name).toMatch(/as of \d\d:\d\d:\d\d/);
    const banner = page.getByRole('status').filter({ hasText: 'Dimmed' });
    expect(await banner.count()).toBe(1);
    expect(await banner.innerText()).toMatch(/Plan, Card, Notifications, Referrals.*upstream_unavailable/);
    await sandbox.heal();
    await expect.poll(() => banner.count()).toBe(0);
  });
});

describe('the session', () => {
  test('ends by “Sign out” in this tab, and in another one, which says why', async () => {
    const { page } = await visitAs('paid', { failing: [401] });
    const other = await openTab(page);
    await heading(other, 'Your account').waitFor(); // without another sign-in
    await button(page, 'Sign out').click();
    await page.getByText('You have signed out.', { exact: true }).waitFor();
    await other.getByText('You have signed out in another tab.').waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });

  test('ends everywhere: another browser notices when it is looked at, and when it asks for something', async () => {
    const { page, key } = await visitAs('paid', { failing: [401] }); // what it waits for ends with one
    const [looking, asking] = [await visit({ failing: [401] }), await visit({ failing: [401] })];
    for (const one of [looking, asking]) await signInWith(one, key);
    await button(page, 'Sign out everywhere').click();
    await heading(page, 'Sign in').waitFor();
    await looking.evaluate(`dispatchEvent(new Event('focus'))`);
    await button(asking, 'Read again').click();
    for (const one of [looking, asking]) await one.getByText(ENDED).waitFor();
  });
});

/** What can be pressed, and what is said to be pressed with it: the names of those that are too small for a finger. */
const TOO_SMALL = `[...document.querySelectorAll('a, button, input, select, summary')]
  .map((target) => (/^(radio|checkbox)$/.test(target.type) ? target.closest('label') : target))
  .filter((target) => target.checkVisibility())
  .map((target) => [target.innerText || target.name, target.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 44 || height < 44)
  .map(([name, { width, height }]) => name + ' ' + width + ' × ' + height)`;

test.for([
  ['light', { width: 390, height: 844 }],
  ['dark', { width: 1280, height: 900 }],
] as const)(
  'axe-core finds nothing wrong with any state of the page in %s colours',
  async ([colorScheme, viewport]) => {
    const options = { colorScheme, viewport, reducedMotion: 'reduce' } as const;
    const expectAccessible = async (page: Page) => {
      expect(await violationsOf(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      if (colorScheme === 'light') expect(await page.evaluate(TOO_SMALL)).toEqual([]);
    };
    const stranger = await visit(options);
    await heading(stranger, 'Sign in').waitFor();
    await expectAccessible(stranger);
    const { page } = await visitAs('affiliate', options);
    await expectAccessible(page);
    await button(page, 'What the gateway did').click();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await sandbox.fault({ operation: '*', status: 503, times: 1_000 });
    await page.getByText('Dimmed is what was read last').waitFor();
    await expectAccessible(page);
    await sandbox.heal();
  },
);
