import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { violationsOf } from './axe.ts';
import { button, heading, partOf, settled, turn, withDashboard } from './dashboard.ts';

const { visit, visitAs, sandbox } = withDashboard();

const SCREENSHOTS = 'test-output/screenshots';

/** Whatever of the page can be shown and hidden is shown. */
async function unfold(page: Page) {
  await button(page, 'Load it both ways').click();
  await page.getByText('All is measured.').waitFor();
  await page.getByText('Call by call').click();
  await partOf(page, 'Referral earnings').getByText('By month').click();
}

/** One section is not there, and a purchase is refused. */
async function fail(page: Page) {
  await sandbox.fault({ operation: 'listNotifications', status: 503, times: 1_000 });
  await page.getByText('Dimmed is what was read last').waitFor(); // the gateway keeps no older copy of them
  await button(page, 'Read everything again').click();
  await settled(page);
  await partOf(page, 'Notifications').getByRole('alert').waitFor();
  await page.getByLabel('Shared proxies in the US').fill('-1');
  await button(page, 'Buy').click();
  await partOf(page, 'Buy a plan').getByText('expected 0 or more').waitFor();
}

/** What is shown is old. */
async function outlive(page: Page) {
  await sandbox.fault({ operation: '*', status: 503, times: 1_000 });
  await page.getByText('Dimmed is what was read last').waitFor();
}

/** What can be pressed, and what is said to be pressed with it: the names of those that are too small for a finger. */
const TOO_SMALL = `[...document.querySelectorAll('a, button, input, select, summary')]
  .map((target) => (/^(radio|checkbox)$/.test(target.type) ? target.closest('label') : target))
  .filter((target) => target.checkVisibility())
  .map((target) => [target.innerText || target.name, target.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 44 || height < 44)
  .map(([name, { width, height }]) => name + ' ' + width + ' × ' + height)`;

const DEVICES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } } as const;

const looks = (['light', 'dark'] as const).flatMap((scheme) =>
  (['phone', 'desktop'] as const).map((device) => [scheme, device] as const),
);

describe.each(looks)('in %s colours on a %s', (scheme, device) => {
  const options = { colorScheme: scheme, viewport: DEVICES[device], reducedMotion: 'reduce', failing: [400] } as const;

  async function expectAccessible(page: Page, name: string) {
    await page.screenshot({ path: `${SCREENSHOTS}/${name}-${scheme}-${device}.png`, fullPage: true });
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    if (device === 'phone') expect(await page.evaluate(TOO_SMALL)).toEqual([]);
  }

  test('axe-core finds nothing wrong where one signs in', async () => {
    const page = await visit(options);
    await heading(page, 'Sign in').waitFor();
    await expectAccessible(page, 'sign-in');
  });

  test('axe-core finds nothing wrong with the account', async () => {
    const page = await visitAs('Affiliate', options);
    await unfold(page);
    await expectAccessible(page, 'account');
  });

  test('axe-core finds nothing wrong with what failed', async () => {
    const page = await visitAs('Affiliate', options);
    await fail(page);
    await expectAccessible(page, 'failed');
  });

  test('axe-core finds nothing wrong with what is old', async () => {
    const page = await visitAs('Affiliate', options);
    await outlive(page);
    await expectAccessible(page, 'old');
  });

  test('axe-core finds nothing wrong with the drawers', async () => {
    const page = await visitAs('Affiliate', options);
    await button(page, 'What the gateway did').click();
    await expectAccessible(page, 'drawer');
    if (device !== 'phone') return;
    await button(page, 'Make it fail').click();
    await turn(page, 'Slow upstream');
    await expectAccessible(page, 'switches');
  });
});

/** Of what has the focus; null where nothing has. */
const OUTLINE = `(({ activeElement, body }) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(activeElement);
  return activeElement === body ? null : outlineStyle + ' ' + outlineWidth;
})(document)`;

/** Goes there as somebody does who has no mouse. Each element on the way has to show that it has the focus. */
async function tabTo(page: Page, target: Locator, key = 'Tab') {
  for (let presses = 0; presses < 100; presses++) {
    await page.keyboard.press(key);
    const outline = await page.evaluate(OUTLINE);
    if (outline !== null) expect(outline).toMatch(/^(?!none)\w+ [1-9]/);
    if ((await target.and(page.locator(':focus')).count()) > 0) return;
  }
  throw new Error(`${key} does not lead to ${String(target)}`);
}

describe('with the keyboard alone', () => {
  test('one signs in, changes the referral mode, buys and signs out', async () => {
    const page = await visit();
    await heading(page, 'Sign in').waitFor();
    await tabTo(page, button(page, 'Affiliate'));
    await page.keyboard.press('Enter');
    await heading(page, 'Your account').waitFor();
    await settled(page);

    const referrals = partOf(page, 'Referrals');
    await tabTo(page, referrals.getByRole('radio', { checked: true }));
    const before = await referrals.getByRole('radio', { checked: true }).inputValue();
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => referrals.getByRole('radio', { checked: true }).inputValue()).not.toBe(before);
    await tabTo(page, button(referrals, 'Save'));
    await page.keyboard.press('Space');
    await referrals.getByText('Saved.').waitFor();

    const shop = partOf(page, 'Buy a plan');
    await tabTo(page, shop.getByLabel('Shared proxies in the US'));
    await page.keyboard.press('ArrowUp');
    await tabTo(page, button(shop, 'Buy'));
    await page.keyboard.press('Enter');
    await shop.getByText(/Plan \d+ is bought/).waitFor();

    await tabTo(page, button(page, 'Sign out'), 'Shift+Tab');
    await page.keyboard.press('Space');
    await page.getByText('You have signed out.', { exact: true }).waitFor();
  });

  test('one turns a switch and tries again, and does not lose one’s place', async () => {
    const page = await visitAs('Affiliate');
    const failing = page.getByRole('switch', { name: 'Failing notifications' });
    await tabTo(page, failing);
    await page.keyboard.press('Space');
    await page.getByText('Dimmed is what was read last').waitFor();
    await tabTo(page, button(page, 'Read everything again'), 'Shift+Tab');
    await page.keyboard.press('Enter');
    await settled(page);
    const notifications = partOf(page, 'Notifications');
    await tabTo(page, button(notifications, 'Try again'));
    await page.keyboard.press('Enter');
    await turn(page, 'Failing notifications');
    await notifications.getByText('Your plan will be renewed soon').waitFor();
  });

  test('one opens a drawer, is in it with the next step, and leaves it by Escape', async () => {
    const page = await visitAs('Affiliate', { viewport: DEVICES.phone });
    const faults = button(page, 'Make it fail');
    await tabTo(page, faults, 'Shift+Tab');
    await page.keyboard.press('Enter');
    const drawer = partOf(page, 'Make it fail');
    await page.keyboard.press('Tab');
    expect(await button(drawer, 'Close').and(page.locator(':focus')).count()).toBe(1);
    await tabTo(page, page.getByRole('switch', { name: 'Slow upstream' }));
    await page.keyboard.press('Escape');
    expect(await drawer.isVisible()).toBe(false);
    expect(await faults.and(page.locator(':focus')).count()).toBe(1);
  });
});
