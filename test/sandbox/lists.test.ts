import { describe, expect, it } from 'vitest';
import type { AccountName } from '../../sandbox/src/accounts.ts';
import { createClient, DAY_SECONDS, ORIGIN, type Page, START } from './client.ts';

const { all, call, get } = createClient();

const list = (path: string, as: AccountName = 'paid') => get<Page>(`/api/v2/${path}`, as);
const values = async (path: string, field: string, as?: AccountName) =>
  (await list(path, as)).results.map((item) => item[field]);

describe('pages', () => {
  it('have 25 items and URLs on the origin that was asked, with the other parameters', async () => {
    const first = await list('payment/transaction/?page_size=25');
    expect([first.count, first.results.length, first.previous]).toEqual([30, 25, null]);
    expect(first.next).toBe(`${ORIGIN}/api/v2/payment/transaction/?page_size=25&page=2`);
    const path = 'referral/credit/?mode=credits&page=2&page_size=10';
    const { next, previous } = await list(path, 'affiliate');
    expect(next).toBe(`${ORIGIN}/api/v2/referral/credit/?mode=credits&page=3&page_size=10`);
    expect(previous).toBe(`${ORIGIN}/api/v2/referral/credit/?mode=credits&page_size=10`);
  });

  it('lead through all 240 credits, each once', async () => {
    const credits = await all('/api/v2/referral/credit/', 'affiliate');
    expect(new Set(credits.map(({ id }) => id)).size).toBe(240);
    expect(credits).toHaveLength(240);
  });

  it('answer 404 beyond the last', async () => {
    const answer = await call('GET', '/api/v2/payment/transaction/?page=3', { as: 'paid' });
    expect(answer).toMatchObject({ status: 404, json: { detail: 'Invalid page.' } });
  });
});

/** Which of a list are there, by one of their fields. */
const FILTERED: readonly (readonly [string, string, unknown[]])[] = [
  ['notification/', 'id', [1103, 1102, 1101]],
  ['notification/?dismissed_at__isnull=True', 'id', [1103, 1102]],
  ['payment/method/', 'id', [1073, 1072, 1071]],
  ['payment/method/?brand=visa', 'id', [1073, 1071]],
  ['payment/method/?state=', 'id', [1073]],
  ['payment/method/?ordering=last4', 'last4', ['0002', '4242', '4444']],
  ['payment/pending/?status=failed', 'id', [1302]],
];

it.each(FILTERED)('%s has these, by %s: %j', async (path, field, expected) => {
  expect(await values(path, field)).toEqual(expected);
});

const at = (days: number) => encodeURIComponent(new Date(START + days * DAY_SECONDS * 1000).toISOString());
const ACTIVITY = '/api/v2/proxy/activity/';

it.each([
  ['/api/v2/referral/credit/?referral_channel=9', { referral_channel: ['there is none with this id'] }],
  ['/api/v2/referral/credit/?ordering=user_id', { ordering: [{ code: 'invalid_value' }] }],
  ['/api/v2/subuser/1081/?plan_id=1003', { plan_id: [{ code: 'invalid_choice' }] }],
  ['/api/v2/subuser/1081/?plan_id=x', { plan_id: [{ message: 'expected an integer' }] }],
  [`${ACTIVITY}?timestamp__gte=${at(-91.5)}`, [{ code: 'timestamp_too_old' }]],
  [`${ACTIVITY}?timestamp__lte=${at(19)}`, [{ code: 'timestamp_after_end_date' }]],
  [`${ACTIVITY}?timestamp__gte=${at(-1)}&timestamp__lte=${at(-2)}`, [{ code: 'invalid_range' }]],
  [`${ACTIVITY}?bytes__gte=many`, 'bytes__gte must be a number of bytes.'],
])('%s is refused', async (path, json) => {
  const answer = await call('GET', path, { as: 'affiliate' });
  expect([answer.status, answer.json]).toMatchObject([400, json]);
});

const activity = (query: string) => get<Page>(`${ACTIVITY}?page_size=100&${query}`);
const reasons = async (query: string) => new Set((await activity(query)).results.map((one) => one['error_reason']));
const timesOf = (ones: Page['results']) => ones.map(({ timestamp }) => Date.parse(String(timestamp)));

it('activity covers the last six days, newest first, page by page after the last, without `previous`', async () => {
  const times = timesOf(await all(ACTIVITY));
  expect([times.length, new Set(times).size]).toEqual([72, 72]);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
  expect([times[0]! <= START, times.at(-1)! >= START - 6 * DAY_SECONDS * 1000]).toEqual([true, true]);
  const { next, ...first } = await get<Page>(ACTIVITY);
  expect([next, 'previous' in first]).toEqual([expect.stringContaining('?starting_after='), false]);
});

it('activity goes back ninety days, and has a projected record for each hour to come', async () => {
  expect((await activity(`timestamp__gte=${at(-90)}`)).count).toBe(1080);
  const { count, results } = await activity(`timestamp__lte=${at(1.01)}`);
  expect([count, timesOf(results).filter((time) => time > START).length]).toEqual([72 + 24, 24]);
});

it('activity is filtered by error reason, bytes, text, category and plan', async () => {
  const any = new Set(['client_connect_forbidden_host', 'server_connect_timeout']);
  expect(await reasons('error_reason=*')).toEqual(any);
  expect(await reasons('error_reason=server_connect_timeout')).toEqual(new Set(['server_connect_timeout']));
  const forbidden = await reasons('verification_category=acceptable_use_violation');
  expect(forbidden).toEqual(new Set(['client_connect_forbidden_host']));
  const { results } = await activity('bytes__gte=1000&bytes__lte=90000');
  expect(results.every(({ bytes }) => Number(bytes) >= 1000 && Number(bytes) <= 90_000)).toBe(true);
  const found = (await activity('search=EXAMPLE.org')).results.map(({ hostname }) => hostname);
  expect([results.length > 0, new Set(found)]).toEqual([true, new Set(['www.example.org'])]);
  expect((await activity('plan_id=1002')).count).toBe(0);
});

describe('referrals as time passes', () => {
  const CONFIG = '/api/v2/referral/config/';
  const WEEK = 6.5 * DAY_SECONDS;

  it('what was earned becomes credits and a payout when the day comes', async () => {
    const client = createClient();
    const credits = async () => Number((await client.get('/api/v2/subscription/', 'affiliate'))['free_credits']);
    expect(await client.get(CONFIG, 'affiliate')).toMatchObject({ credits_earned: 37.5, payouts_earned: 20 });
    const before = await credits();
    client.sandbox.advanceClock(WEEK);
    expect(await client.get(CONFIG, 'affiliate')).toMatchObject({ credits_earned: 0, payouts_earned: 0 });
    const { results } = await client.get<Page>('/api/v2/referral/earnout/?page_size=2', 'affiliate');
    expect(results.map(({ mode, status }) => `${String(mode)} ${String(status)}`)).toEqual([
      'payout processing',
      'credits completed',
    ]);
    expect(results[1]!['amount']).toBe((await credits()) - before);
    expect(await client.get(CONFIG)).toMatchObject({ credits_earned: 12.5, minimum_earn_out_amount: 15 }); // waits below it
  });

  it('the config keeps its two writable fields, and refuses what they cannot be, and others', async () => {
    const change = (body: object) => call('PATCH', CONFIG, { as: 'lapsed', body });
    const { json } = await change({ mode: 'payout', wallet_payout_email: 'me@wallet.example' });
    expect(json).toMatchObject({ mode: 'payout', wallet_payout_email: 'me@wallet.example' });
    expect(await get(CONFIG, 'lapsed')).toEqual(json);
    expect((await change({ mode: 'cash' })).json).toMatchObject({ mode: [{ message: 'expected payout or credits' }] });
    for (const body of [{ wallet_payout_email: 'nowhere' }, { credits_earned: 1000 }, {}])
      expect(await change(body)).toMatchObject({ status: 400 });
  });
});
