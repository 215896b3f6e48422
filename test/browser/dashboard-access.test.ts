import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { violationsOf } from './axe.ts';
import { button, heading, partOf, settled, turn, withDashboard } from './dashboard.ts';

const { visit, visitAs } = withDashboard();

const SCREENSHOTS = 'test-output/screenshots';

/** Whatever of the page can be shown and hidden is shown. */
async function unfold(page: Page) {
  await button(page, 'Load it both ways').click();
  await page.getByText('One overview: all there').waitFor();
  await partOf(page, 'Referral earnings').getByText('By month').click();
}

/** One section is not there, and a purchase is refused. */
async function fail(page: Page) {
  await turn(page, 'Failing notifications');
  await button(page, 'Read everything again').click();
  await settled(page);
  await partOf(page, 'Notifications').getByRole('alert').waitFor();
  await page.getByLabel('Shared proxies in the US').fill('-1');
  await button(page, 'Buy').click();
  await partOf(page, 'Buy a plan').getByText('expected 0 or more').waitFor();
}

const DEVICES = { phone: { width: 360, height: 740 }, desktop: { width: 1280, height: 900 } } as const;

const looks = (['light', 'dark'] as const).flatMap((scheme) =>
  (['phone', 'desktop'] as const).map((device) => [scheme, device] as const),
);

describe.each(looks)('in %s colours on a %s', (scheme, device) => {
  const options = { colorScheme: scheme, viewport: DEVICES[device], reducedMotion: 'reduce', failing: [400] } as const;

  async function expectAccessible(page: Page, name: string) {
    await page.screenshot({ path: `${SCREENSHOTS}/${name}-${scheme}-${device}.png`, fullPage: true });
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
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
    await settled(page);
    await tabTo(page, button(page, 'Read everything again'), 'Shift+Tab');
    await page.keyboard.press('Enter');
    await settled(page);
    await turn(page, 'Failing notifications');
    const notifications = partOf(page, 'Notifications');
    await tabTo(page, button(notifications, 'Try again'), 'Shift+Tab');
    await page.keyboard.press('Enter');
    await notifications.getByText('Your plan will be renewed soon').waitFor();
    expect(await notifications.locator(':focus').count()).toBe(1);
  });
});
