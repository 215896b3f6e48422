import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { button, heading, partOf, record, settled, signIn, signInWith, turn, withDashboard } from './dashboard.ts';

const { visit, visitAs, openTab, sandbox, read, newKey } = withDashboard();

const PAID = 'sandbox-paid-key';
const AFFILIATE = 'sandbox-affiliate-key';
const SIGNED_OUT_ELSEWHERE = 'You have signed out in another tab.';
const ENDED = 'Your session has ended. Please sign in again.';
const SECTIONS = ['Plan', 'Card', 'Notifications', 'Referrals'];

interface Subscription {
  readonly plan: number;
  readonly payment_method: number | null;
  readonly end_date: string;
  readonly free_credits: number;
}

interface Listed<T> {
  readonly count: number;
  readonly results: readonly T[];
}

interface Credit {
  readonly amount: number | string;
  readonly reverted_at: string | null;
}

const SUBSCRIPTION = '/api/v2/subscription/';
const TRANSACTIONS = '/api/v2/payment/transaction/';
const CREDITS = '/api/v2/referral/credit/?page_size=100';

/** All that a script finds. */
const KEPT = `(async () => ({
  cookie: document.cookie,
  cookies: await cookieStore.getAll(),
  local: { ...localStorage },
  session: { ...sessionStorage },
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
  name: window.name,
}))()`;

const day = (time: string) =>
  new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date(time));
const dollars = (amount: number) => `$${amount.toFixed(2)}`;

/** What is charged to an account: how often it was asked for, and what came of it. */
async function charged(account: string) {
  const key = `sandbox-${account}-key`;
  const { plan, free_credits: credit } = await read<Subscription>(key, SUBSCRIPTION);
  const { count } = await read<Listed<unknown>>(key, TRANSACTIONS);
  return { asked: (await sandbox.calls('purchasePlan', account)).length, transactions: count, plan, credit };
}

const statusOf = (page: Page, name: string) => partOf(page, name).getByRole('status');
const textOf = (page: Page, name: string) => partOf(page, name).innerText();
const expectText = (page: Page, name: string) => expect.poll(() => textOf(page, name));
const expectAlert = (page: Page) => expect.poll(() => page.getByRole('alert').allInnerTexts());

/** Reads with the button until that part of the page says so: an older copy is given when the fresh one is too old. */
const readUntil = (page: Page, name: string) =>
  expect.poll(
    async () => {
      await button(page, 'Read again').click();
      await settled(page);
      return textOf(page, name);
    },
    { interval: 500 },
  );

const buy = (page: Page) => button(partOf(page, 'Buy a plan'), 'Buy');

async function readEverything(page: Page) {
  await button(page, 'Read everything again').click();
  await settled(page);
}

/** What differs to the eye. */
const colourOf = (page: Page, name: string) =>
  page.evaluate<string>(`getComputedStyle([...document.querySelectorAll('h2')]
    .find(({ innerText }) => innerText === ${JSON.stringify(name)}).closest('section')).color`);

describe('who signs in', () => {
  test('sees plan, renewal, card, notifications, referrals and what they have earned', async () => {
    const page = await visit();
    await signIn(page, 'Paid');
    const subscription = await read<Subscription>(PAID, SUBSCRIPTION);
    const notices = await read<Listed<unknown>>(PAID, '/api/v2/notification/?dismissed_at__isnull=True');
    const plan = await textOf(page, 'Plan');
    expect(plan).toContain(`No. ${subscription.plan}`);
    expect(plan).toContain(`on ${day(subscription.end_date)}`);
    expect(plan).toContain(dollars(subscription.free_credits));
    expect(await textOf(page, 'Card')).toContain('Visa ends in 4242');
    expect(await partOf(page, 'Notifications').getByRole('listitem').count()).toBe(notices.count);
    expect(await textOf(page, 'Notifications')).toContain('Your plan will be renewed soon');
    const { referral_code: code } = await read<{ referral_code: string }>(PAID, '/api/v2/referral/config/');
    expect(await textOf(page, 'Referrals')).toContain(code);
  });

  test('sees what referrals have earned as a plot, and month by month', async () => {
    const page = await visitAs('Paid');
    const { results } = await read<Listed<Credit>>(PAID, CREDITS);
    const earned = results.filter(({ reverted_at }) => reverted_at === null).map(({ amount }) => Number(amount));
    const sum = dollars(earned.reduce((total, amount) => total + amount, 0));
    const earnings = partOf(page, 'Referral earnings');
    await earnings.getByRole('img', { name: `rising to ${sum}` }).waitFor();
    await earnings.getByText('By month').click();
    const cells = await earnings.getByRole('row').getByRole('cell').allInnerTexts();
    const purchases = cells.filter((_, index) => index % 2 === 0).map(Number);
    expect(purchases.reduce((total, count) => total + count, 0)).toBe(earned.length);
  });

  test('sees all transactions, page by page', async () => {
    const page = await visitAs('Paid');
    const { count } = await read<Listed<unknown>>(PAID, TRANSACTIONS);
    const transactions = partOf(page, 'Transactions');
    const more = button(transactions, 'Show more');
    for (let shown = 10; shown < count; shown += 10) {
      await expect.poll(() => statusOf(page, 'Transactions').innerText()).toBe(`${shown} of ${count}`);
      expect(await transactions.getByRole('row').count()).toBe(shown + 1); // and the names of the columns
      await more.click();
    }
    await expect.poll(() => statusOf(page, 'Transactions').innerText()).toBe(`${count} of ${count}`);
    expect(await more.count()).toBe(0);
  });

  test('and has no card or no plan is told so', async () => {
    const page = await visitAs('No card');
    expect(await textOf(page, 'Card')).toContain('No card is saved.');
    await expectText(page, 'Transactions').toContain('There are none.');
    await expectText(page, 'Referral earnings').toContain('No referral has earned anything yet.');
  });

  test('with a key that is refused is told why, and stays', async () => {
    const page = await visit({ failing: [401, 403] });
    await button(page, 'Suspended').click();
    await expectAlert(page).toContainEqual(expect.stringContaining('account_suspended'));
    await page.getByLabel('Another key').fill('no-such-key');
    await button(page, 'Sign in').click();
    await expectAlert(page).toContainEqual(expect.stringContaining('unauthenticated'));
    expect(await heading(page, 'Sign in').count()).toBe(1);
    expect(await page.context().cookies()).toEqual([]);
  });
});

describe('the referral mode', () => {
  interface Config {
    readonly mode: string;
    readonly wallet_payout_email: string | null;
  }
  const config = () => read<Config>(AFFILIATE, '/api/v2/referral/config/');

  test('is changed, and is what was chosen after the page is loaded again', async () => {
    const page = await visitAs('Affiliate');
    const referrals = partOf(page, 'Referrals');
    const save = async (mode: string) => {
      await referrals.getByRole('radio', { name: mode }).check();
      await button(referrals, 'Save').click();
      await expectText(page, 'Referrals').toContain('Saved.');
    };
    await save('Account credits');
    expect(await config()).toMatchObject({ mode: 'credits' });
    await referrals.getByRole('radio', { name: 'Payout to a wallet' }).check();
    await referrals.getByLabel('Wallet e-mail').fill('ann@wallet.example');
    await save('Payout to a wallet');
    expect(await config()).toMatchObject({ mode: 'payout', wallet_payout_email: 'ann@wallet.example' });
    await page.reload();
    await expect.poll(() => referrals.getByLabel('Wallet e-mail').inputValue()).toBe('ann@wallet.example');
    expect(await referrals.getByRole('radio', { name: 'Payout to a wallet' }).isChecked()).toBe(true);
  });

  test('is not changed with an address that is none, which is said at the field', async () => {
    const page = await visitAs('Affiliate', { failing: [400] });
    const before = await config();
    const referrals = partOf(page, 'Referrals');
    await referrals.getByRole('radio', { name: 'Payout to a wallet' }).check();
    const wallet = referrals.getByLabel('Wallet e-mail');
    await wallet.fill('no address');
    await button(referrals, 'Save').click();
    await expect.poll(() => wallet.getAttribute('aria-invalid')).toBe('true');
    await expectText(page, 'Referrals').toContain('e-mail address');
    expect(await textOf(page, 'Referrals')).not.toContain('Saved.');
    expect(await config()).toEqual(before);
  });
});

describe('a purchase', () => {
  test('by a double click is charged once', async () => {
    const page = await visitAs('Paid');
    const before = await charged('paid');
    await buy(page).dblclick();
    await expectText(page, 'Buy a plan').toContain('You clicked 2 times and bought it once.');
    const after = await charged('paid');
    expect(after).toEqual({
      asked: before.asked + 1,
      transactions: before.transactions + 1,
      plan: expect.any(Number),
      credit: before.credit - 2.5,
    });
    expect(after.plan).not.toBe(before.plan);
    await expectText(page, 'Plan').toContain(`No. ${after.plan}`);
    await expectText(page, 'Plan').toContain(dollars(after.credit));
    await expectText(page, 'Transactions').toContain(`10 of ${after.transactions}`);

    await button(page, 'Buy another one').click();
    await buy(page).click();
    await expect.poll(async () => (await charged('paid')).asked).toBe(before.asked + 2);
    await expectText(page, 'Buy a plan').toContain('Buy another one');
  });

  test('that needs a recaptcha asks for it, charges the card, and is followed to its end', async () => {
    const page = await visitAs('Paused', { failing: [400] });
    const before = await charged('paused');
    await buy(page).click();
    const recaptcha = partOf(page, 'Buy a plan').getByLabel('Recaptcha');
    await recaptcha.fill('any text');
    expect(await textOf(page, 'Buy a plan')).toContain('A payment requires a recaptcha validation.');
    expect(await charged('paused')).toEqual({ ...before, asked: before.asked + 1 });
    await buy(page).click();
    await expectText(page, 'Buy a plan').toMatch(/Plan \d+ is bought, with a payment.*Payment \d+ is under way/s);
    const { asked, plan } = await charged('paused');
    expect(asked).toBe(before.asked + 2);
    await expectText(page, 'Plan').toContain(`No. ${plan}`);
    await sandbox.advance(31); // what the processor takes
    await expectText(page, 'Buy a plan').toMatch(/Payment \d+ is through/);
    expect((await charged('paused')).transactions).toBe(before.transactions + 1);
    await expectText(page, 'Transactions').toContain(`of ${before.transactions + 1}`);
  });

  test('of something that cannot be bought says so at the field, and buys nothing', async () => {
    const page = await visitAs('Affiliate', { failing: [400] });
    const before = await charged('affiliate');
    const proxies = partOf(page, 'Buy a plan').getByLabel('Shared proxies in the US');
    await proxies.fill('-1');
    await buy(page).click();
    await expect.poll(() => proxies.getAttribute('aria-invalid')).toBe('true');
    expect(await textOf(page, 'Buy a plan')).toContain('expected 0 or more');
    expect(await charged('affiliate')).toMatchObject({ transactions: before.transactions, plan: before.plan });
  });
});

describe('sections', () => {
  test('appear as they arrive', async () => {
    const page = await visitAs('Affiliate');
    await sandbox.fault({ operation: 'listNotifications', delayMs: 4_000 });
    const shown = await record<string[]>(
      page,
      `[...document.querySelectorAll('section[aria-busy=false] h2')].map((title) => title.textContent)`,
    );
    await readEverything(page);
    const moments = (await shown()).map((titles) => SECTIONS.filter((title) => titles.includes(title)));
    expect(moments).toContainEqual([]);
    expect(moments).toContainEqual(['Plan', 'Card', 'Referrals']); // while the notifications were held back
    expect(moments.at(-1)).toEqual(SECTIONS);
  });

  test('that fail say why, keep none of the others back, are tried again alone, and are there when they can be', async () => {
    const page = await visitAs('Affiliate');
    await turn(page, 'Failing notifications');
    await expectText(page, 'Notifications').toContain('as of'); // the gateway keeps no older copy of them
    await readEverything(page);
    const failure = partOf(page, 'Notifications').getByRole('alert');
    expect(await failure.innerText()).toMatch(/upstream_unavailable.*request [\w-]+/s);
    for (const name of ['Plan', 'Card', 'Referrals']) {
      expect(await textOf(page, name)).toMatch(/after [\d,]+ ms/);
      expect(await partOf(page, name).getByRole('alert').count()).toBe(0);
    }
    const asked: (string | null)[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).searchParams.get('sections')));
    await button(failure, 'Try again').click();
    await settled(page);
    expect(asked.filter((sections) => sections !== null)).toEqual(['notifications']);
    expect(await failure.count()).toBe(1);
    await turn(page, 'Failing notifications');
    await expectText(page, 'Notifications').toContain('Your plan will be renewed soon');
    expect(await failure.count()).toBe(0);
  });

  test('are dimmed while the upstream is down, one banner says why and of when they are, and all is well again by itself', async () => {
    const page = await visitAs('Affiliate');
    const usual = await colourOf(page, 'Plan');
    await sandbox.fault({ operation: '*', status: 503, times: 1_000 });
    for (const name of SECTIONS) {
      await expectText(page, name).toMatch(/as of \d\d:\d\d:\d\d/);
      expect(await colourOf(page, name)).not.toBe(usual);
    }
    expect(await textOf(page, 'Notifications')).toContain('Your plan will be renewed soon');
    const banner = page.getByRole('status').filter({ hasText: 'Dimmed' });
    expect(await banner.count()).toBe(1);
    expect(await banner.innerText()).toMatch(
      /not available.* at \d\d:\d\d:\d\d: Plan, Card, Notifications, Referrals.*upstream_unavailable/,
    );
    await sandbox.heal();
    await expect.poll(() => banner.count()).toBe(0);
    for (const name of SECTIONS) expect(await colourOf(page, name)).toBe(usual);
  });

  test('are dimmed where one alone cannot be read, and where nothing is left of the gateway', async () => {
    const page = await visitAs('Affiliate', { failing: [502] });
    const [usual, banner] = [await colourOf(page, 'Plan'), page.getByRole('status').filter({ hasText: 'Dimmed' })];
    await turn(page, 'Failing notifications');
    await expectText(page, 'Notifications').toContain('as of');
    expect(await banner.innerText()).toMatch(/\d\d: Notifications\./);
    expect(await colourOf(page, 'Plan')).toBe(usual);
    await page.route('**/bff/v1/account-overview*', (route) => route.fulfill({ status: 502 }));
    await button(banner, 'Try now').click();
    await expect.poll(() => banner.innerText()).toMatch(/Plan, Card, Notifications, Referrals.*unexpected_answer/);
    expect(await textOf(page, 'Plan')).toMatch(/as of.*No\. \d+/s);
    await page.unroute('**/bff/v1/account-overview*');
    await turn(page, 'Failing notifications');
    await expect.poll(() => banner.count()).toBe(0);
  });
});

test('a change that somebody else makes is shown, and nothing is asked for', async () => {
  const [page, other] = [await visitAs('Affiliate'), await visitAs('Affiliate')];
  await buy(other).click();
  await expectText(other, 'Buy a plan').toMatch(/Plan \d+ is bought/);
  const [, plan = ''] = /Plan (\d+) is bought/.exec(await textOf(other, 'Buy a plan')) ?? [];
  await expectText(page, 'Plan').toContain(`No. ${plan}`);
});

test('the price is known before anything is bought, and who pays', async () => {
  const page = await visitAs('Paused');
  const { free_credits: credit } = await read<Subscription>('sandbox-paused-key', SUBSCRIPTION);
  const proxies = partOf(page, 'Buy a plan').getByLabel('Shared proxies in the US');
  await proxies.fill('7');
  await expectText(page, 'Buy a plan').toContain(`$3.50 a month, ${dollars(3.5 - credit)} of it from your card`);
  await proxies.fill('');
  expect(await textOf(page, 'Buy a plan')).not.toContain('$');
});

test('the drawer says what was asked for, what came from copies, and what was not sent', async () => {
  const page = await visitAs('Affiliate');
  await button(page, 'What the gateway did').click();
  const figure = async (name: string) => {
    const facts = partOf(page, 'What the gateway did').locator('dl > div');
    const value = await facts
      .filter({ has: page.getByText(name, { exact: true }) })
      .locator('dd')
      .innerText();
    return Number(value.replace(/[, B]/g, ''));
  };
  const [calls, received] = [await figure('Calls'), await figure('Received')];
  expect(calls).toBeGreaterThan(3);
  expect(received).toBeGreaterThan(1_000);
  const confirmed = await figure('Nothing new (304)');
  await page.keyboard.press('Escape');
  await button(page, 'Read again').click(); // lists too, of which the browser has copies
  await button(page, 'What the gateway did').click();
  await expect.poll(() => figure('Nothing new (304)')).toBeGreaterThan(confirmed);
  expect(await figure('Calls')).toBeGreaterThan(calls);
  expect(await figure('Not sent')).toBeGreaterThan(1_000);
  expect(await figure('Answered from its copies')).toBeGreaterThan(0);
  expect(await textOf(page, 'What the gateway did')).toMatch(/GET \/bff\/v1\/account-overview.*200 · hit; ttl=\d/s);
});

test('the comparison has the figures of both ways, from one origin and from another, over a line of 150 ms', async () => {
  const page = await visitAs('Affiliate');
  const compared = partOf(page, 'Five calls or one');
  await button(compared, 'Load it both ways').click();
  await compared.getByText('All is measured.').waitFor();
  const row = async (name: string) => {
    const cells = compared
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name }) })
      .getByRole('cell');
    return (await cells.allInnerTexts()).map((text) => Number(text.replaceAll(',', '')));
  };
  expect(await row('Requests')).toEqual([5, 1, 5, 1]);
  expect(await row('Preflights')).toEqual([0, 0, 5, 1]);
  const [first, all] = [await row('First data, ms'), await row('All data, ms')];
  // A round trip; from another origin one to connect, one for the preflight, and one for the call.
  for (const [index, trips] of [1, 1, 3, 3].entries()) expect(first[index]).toBeGreaterThanOrEqual(trips * 150 - 1);
  for (const [index, trips] of [2, 1, 4, 3].entries()) expect(all[index]).toBeGreaterThanOrEqual(trips * 150 - 1);
  for (const name of ['Sent, kB', 'Received, kB']) {
    const [five = 0, one = 0, fiveAfar = 0, oneAfar = 0] = await row(name);
    expect(one).toBeGreaterThan(0.3);
    expect([five > one, fiveAfar > five, oneAfar > one, fiveAfar > oneAfar]).toEqual([true, true, true, true]);
  }

  await compared.getByText('Call by call').click();
  for (const name of [/^Five calls, one origin: [\d,]+ ms$/, /^One overview, another origin: [\d,]+ ms$/])
    await compared.getByRole('heading', { name }).waitFor();
  const { payment_method: card } = await read<Subscription>(AFFILIATE, SUBSCRIPTION);
  const calls = ['/subscription/', '/payment/method/', '/notification/', '/referral/config/', '/account-overview'];
  const each = [...calls, `/payment/method/${card}/`];
  const names = await compared.getByRole('listitem').getByRole('code').allInnerTexts();
  expect(names.toSorted()).toEqual([...each, ...each].toSorted());
});

describe('the switch', () => {
  test('“Slow upstream”: each section is shown when it comes', async () => {
    const page = await visitAs('Affiliate');
    await turn(page, 'Slow upstream');
    await readEverything(page);
    const after = async (name: string) => {
      const [, ms = ''] = /after ([\d,]+) ms/.exec(await textOf(page, name)) ?? [];
      return Number(ms.replaceAll(',', ''));
    };
    const inOrder = ['Plan', 'Notifications', 'Referrals', 'Card'];
    const times = await Promise.all(inOrder.map(after));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(new Set(times).size).toBe(4);
  });

  test('“Rate-limited upstream”: copies while there are some, else three tries and the reason', async () => {
    const page = await visit({ failing: [429] });
    await signInWith(page, await newKey(AFFILIATE));
    await turn(page, 'Rate-limited upstream');
    for (const name of SECTIONS) await readUntil(page, name).toContain('as of');
    const statuses: number[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/bff/v1/account-overview')) statuses.push(response.status());
    });
    await readEverything(page);
    expect(statuses).toEqual([429, 429, 429]);
    for (const name of SECTIONS) expect(await textOf(page, name)).toContain('rate_limited');
    await turn(page, 'Rate-limited upstream');
    await readEverything(page);
    for (const name of SECTIONS) expect(await textOf(page, name)).toMatch(/after [\d,]+ ms/);
  });

  test('“Cut off in mid-purchase”: the page finds out that it was bought, and it is charged once', async () => {
    const page = await visitAs('Paid', { failing: [502] });
    await turn(page, 'Cut off in mid-purchase');
    const before = await charged('paid');
    const said = await record<string>(page, `document.querySelector('main').innerText`);
    await buy(page).click();
    await expectText(page, 'Buy a plan').toMatch(/the account shows it: plan \d+ is bought/);
    expect((await said()).some((all) => all.includes('Nobody knows yet whether you have bought it.'))).toBe(true);
    const after = await charged('paid');
    expect(after).toMatchObject({ asked: before.asked + 1, transactions: before.transactions + 1 });
    expect(await textOf(page, 'Buy a plan')).toContain(`plan ${after.plan} is bought`);
    await expectText(page, 'Plan').toContain(`No. ${after.plan}`);
    await turn(page, 'Cut off in mid-purchase');
    await button(page, 'Buy another one').click(); // within the minute in which an equal one counts as the same
    await buy(page).click();
    await expectText(page, 'Buy a plan').toMatch(/Plan \d+ is bought/);
    expect(await charged('paid')).toMatchObject({ asked: before.asked + 2, transactions: before.transactions + 2 });
  });
});

describe('the session', () => {
  test('ends by “Sign out” in this tab, and in another one, which says why', async () => {
    const page = await visit({ failing: [401] });
    await signIn(page, 'Paid');
    const other = await openTab(page);
    await heading(other, 'Your account').waitFor(); // without another sign-in
    await button(page, 'Sign out').click();
    await page.getByText('You have signed out.', { exact: true }).waitFor();
    await other.getByText(SIGNED_OUT_ELSEWHERE).waitFor();
    for (const tab of [page, other]) expect(await heading(tab, 'Your account').count()).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
    await signIn(other, 'Paid');
    await heading(page, 'Your account').waitFor(); // which the first tab hears too
  });

  test('ends everywhere: another browser notices when it is looked at, and when it asks for something', async () => {
    const [key, page] = [await newKey(PAID), await visit({ failing: [401] })]; // what it waits for ends with one
    await signInWith(page, key);
    const [looking, asking] = [await visit({ failing: [401] }), await visit({ failing: [401] })];
    for (const one of [looking, asking]) await signInWith(one, key);
    await button(page, 'Sign out everywhere').click();
    await heading(page, 'Sign in').waitFor();
    await looking.evaluate(`dispatchEvent(new Event('focus'))`);
    await button(asking, 'Read again').click();
    for (const one of [looking, asking]) {
      await one.getByText(ENDED).waitFor();
      expect(await heading(one, 'Sign in').count()).toBe(1);
    }
  });

  test('shows nothing of the key to scripts, and the page says so', async () => {
    const page = await visit();
    const received: Promise<string>[] = [];
    const sent: string[] = [];
    page.on('response', (response) => {
      const parts = [response.allHeaders(), response.text().catch(() => '')];
      received.push(Promise.all(parts).then((all) => JSON.stringify(all)));
    });
    page.on('request', (request) => {
      if (!request.url().endsWith('/bff/v1/session'))
        sent.push(JSON.stringify([request.url(), request.headers(), request.postData()]));
    });
    const key = await newKey(PAID);
    await signInWith(page, key);
    await readEverything(page);
    await button(page, 'Load it both ways').click();
    await expectText(page, 'Five calls or one').toContain('All is measured.');
    expect(received.length).toBeGreaterThan(10);
    for (const one of [...(await Promise.all(received)), ...sent]) expect(one).not.toContain(key);

    expect(await page.evaluate(KEPT)).toEqual({
      cookie: '',
      cookies: [],
      local: {},
      session: {},
      databases: [],
      caches: [],
      name: '',
    });
    expect(await page.content()).not.toContain(key);
    const panel = 'What scripts can see of the session';
    const terms = await partOf(page, panel).getByRole('term').allInnerTexts();
    const said = await partOf(page, panel).getByRole('definition').allInnerTexts();
    expect(terms).toEqual(['document.cookie', 'cookieStore', 'localStorage', 'sessionStorage', 'account', 'until']);
    expect(said.slice(0, 4)).toEqual(['nothing', 'nothing', 'nothing', 'nothing']);
    const { account } = await page.evaluate<{ account: string }>(
      `fetch('/bff/v1/session').then((answer) => answer.json())`,
    );
    expect(said[4]).toBe(account);
    await page.evaluate(`document.cookie = 'seen=1'`);
    await expectText(page, panel).toContain('seen=1'); // it does look
  });
});
