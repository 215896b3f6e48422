import { describe, expect, it } from 'vitest';
import type { AccountName } from '../../sandbox/src/accounts.ts';
import { createClient, DAY_SECONDS } from './client.ts';
import type { Page } from './client.ts';

const { call, get } = createClient();

const list = (path: string, as: AccountName = 'paid') => get<Page>(`/api/v2/${path}`, as);
const values = ({ results }: Page, field: string) => results.map((item) => item[field]);

describe('pages', () => {
  it('have 25 items and URLs on the origin that was asked', async () => {
    const first = await list('payment/transaction/');
    expect([first.count, first.results.length, first.previous]).toEqual([30, 25, null]);
    expect(first.next).toBe('http://upstream.test/api/v2/payment/transaction/?page=2');
    const second = await list('payment/transaction/?page=2');
    expect([second.results.length, second.next]).toEqual([5, null]);
    expect(second.previous).toBe('http://upstream.test/api/v2/payment/transaction/');
  });

  it('keep the other parameters in their URLs', async () => {
    const { next, previous } = await list(
      'referral/credit/?mode=credits&page=2&page_size=10&ordering=-amount',
      'affiliate',
    );
    expect(next).toBe('http://upstream.test/api/v2/referral/credit/?mode=credits&page=3&page_size=10&ordering=-amount');
    expect(previous).toBe('http://upstream.test/api/v2/referral/credit/?mode=credits&page_size=10&ordering=-amount');
  });

  it.each(['0', '-1', 'x', '3', '1.5'])('answer 404 for page %s of two', async (page) => {
    const answer = await call('GET', `/api/v2/payment/transaction/?page=${page}`, { as: 'paid' });
    expect(answer).toMatchObject({ status: 404, json: { detail: 'Invalid page.' } });
  });

  it('lead through all 240 credits, each once', async () => {
    const seen = new Set<unknown>();
    let next: string | null = 'http://upstream.test/api/v2/referral/credit/';
    while (next) {
      const page: Page = await get<Page>(next.replace('http://upstream.test', ''), 'affiliate');
      for (const { id } of page.results) seen.add(id);
      next = page.next;
    }
    expect(seen.size).toBe(240);
  });

  it('pass over a page size that makes no sense', async () => {
    expect((await list('payment/transaction/?page_size=x')).results).toHaveLength(25);
    expect((await list('payment/transaction/?page_size=3')).results).toHaveLength(3);
  });

  it('are a plain array of channels, by id', async () => {
    const channels = await get<{ id: number }[]>('/api/v2/referral/channel/', 'affiliate');
    expect(channels.map(({ id }) => id)).toEqual([3051, 3052, 3053]);
    expect(await get('/api/v2/referral/channel/', 'paid')).toEqual([]);
  });
});

const credits = (query: string) => list(`referral/credit/?page_size=100&${query}`, 'affiliate');

const sorted = (ones: unknown[]) => ones.toSorted((a, b) => ((a as string) < (b as string) ? -1 : 1));

describe('referral credits', () => {
  it('are filtered by mode and status', async () => {
    const reverted = await credits('status=reverted&mode=credits');
    expect(reverted.count).toBeGreaterThan(0);
    expect(new Set(values(reverted, 'status'))).toEqual(new Set(['reverted']));
    expect(values(reverted, 'reverted_at')).not.toContain(null);
    expect(new Set(values(await credits('mode=payout'), 'mode'))).toEqual(new Set(['payout']));
  });

  it('are filtered by channel, an empty value meaning none', async () => {
    expect(new Set(values(await credits('referral_channel=3051'), 'referral_channel_code'))).toEqual(
      new Set(['SAVE20']),
    );
    const without = await credits('referral_channel=');
    expect([without.count, new Set(values(without, 'referral_channel'))]).toEqual([80, new Set([null])]);
    expect((await credits('')).count).toBe(240);
  });

  it('are refused for a channel of someone else', async () => {
    const { json, status } = await call('GET', '/api/v2/referral/credit/?referral_channel=9', { as: 'affiliate' });
    expect([status, json]).toEqual([400, { referral_channel: ['there is none with this id'] }]);
  });

  it.each(['id', 'mode', 'amount', 'status', 'created_at', 'updated_at', 'reverted_at'])(
    'are ordered by %s',
    async (field) => {
      const ascending = values(await credits(`ordering=${field}`), field).filter((value) => value !== null);
      const descending = values(await credits(`ordering=-${field}`), field).filter((value) => value !== null);
      expect(ascending).toEqual(sorted(ascending));
      expect(descending).toEqual(sorted(descending).toReversed());
    },
  );

  it('are refused in another order', async () => {
    const { json, status } = await call('GET', '/api/v2/referral/credit/?ordering=user_id', { as: 'affiliate' });
    expect([status, json]).toMatchObject([400, { ordering: [{ code: 'invalid_value' }] }]);
  });

  it('become available after the grace period', async () => {
    const { get: read, sandbox } = createClient();
    const pending = async () => (await read<Page>('/api/v2/referral/credit/?status=pending', 'affiliate')).count;
    expect(await pending()).toBeGreaterThan(30);
    sandbox.advanceClock(14 * DAY_SECONDS);
    expect(await pending()).toBe(0);
  });
});

describe('earn-outs', () => {
  it('have an error reason exactly when they failed', async () => {
    const { results } = await list('referral/earnout/?page_size=100', 'affiliate');
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['processing', 'completed', 'failed']));
    for (const { error_reason: reason, status } of results) expect(reason !== null).toBe(status === 'failed');
  });

  it('turn what was earned into credits when the day comes', async () => {
    const { get: read, sandbox } = createClient();
    expect(await read('/api/v2/referral/config/', 'affiliate')).toMatchObject({
      credits_earned: 37.5,
      payouts_earned: 20,
    });
    const before = await read('/api/v2/subscription/', 'affiliate');
    sandbox.advanceClock(6.5 * DAY_SECONDS);
    expect(await read('/api/v2/referral/config/', 'affiliate')).toMatchObject({ credits_earned: 0, payouts_earned: 0 });
    const after = await read('/api/v2/subscription/', 'affiliate');
    const { results } = await read<Page>('/api/v2/referral/earnout/?page_size=2', 'affiliate');
    expect(results).toMatchObject([
      { mode: 'payout', status: 'processing', wallet_payout_email: 'affiliate@wallet.example' },
      { mode: 'credits', status: 'completed', wallet_payout_email: null },
    ]);
    const gained = Number(after['free_credits']) - Number(before['free_credits']);
    expect(results[1]?.['amount']).toBe(gained);
    expect(gained).toBeGreaterThanOrEqual(37.5);
  });

  it('fail without a wallet, and keep what was earned', async () => {
    const { call: request, get: read, sandbox } = createClient();
    const path = '/api/v2/referral/config/';
    await request('PATCH', path, { as: 'affiliate', body: { wallet_payout_email: null } });
    sandbox.advanceClock(6.5 * DAY_SECONDS);
    const { results } = await read<Page>('/api/v2/referral/earnout/?page_size=1', 'affiliate');
    expect(results).toMatchObject([{ status: 'failed', error_reason: 'wallet_payout_email_missing' }]);
    expect((await read(path, 'affiliate'))['payouts_earned']).toBe(results[0]?.['amount']);
  });

  it('wait below the minimum', async () => {
    const { get: read, sandbox } = createClient();
    sandbox.advanceClock(6.5 * DAY_SECONDS);
    expect(await read('/api/v2/referral/config/')).toMatchObject({ credits_earned: 12.5, minimum_earn_out_amount: 15 });
    expect(await read<Page>('/api/v2/referral/earnout/')).toMatchObject({ count: 2 });
  });
});

const change = (body: unknown) => call('PATCH', '/api/v2/referral/config/', { as: 'lapsed', body });

describe('the referral config', () => {
  it('keeps what is written to its two writable fields and passes over the others', async () => {
    const { json } = await change({ mode: 'payout', wallet_payout_email: 'me@wallet.example', credits_earned: 1000 });
    expect(json).toMatchObject({
      id: 8009,
      mode: 'payout',
      wallet_payout_email: 'me@wallet.example',
      credits_earned: 0,
    });
    expect(await get('/api/v2/referral/config/', 'lapsed')).toEqual(json);
    expect((await change({ wallet_payout_email: null })).json).toMatchObject({
      mode: 'payout',
      wallet_payout_email: null,
    });
  });

  it('refuses another mode and an address that is none', async () => {
    expect((await change({ mode: 'cash' })).json).toEqual({
      mode: [{ message: 'expected payout or credits', code: 'invalid_value' }],
    });
    const { json, status } = await change({ wallet_payout_email: 'nowhere' });
    const error = { message: 'expected an e-mail address', code: 'invalid_format' };
    expect([status, json]).toEqual([400, { wallet_payout_email: [error] }]);
  });
});

const ids = async (query: string) => values(await list(`notification/${query}`), 'id');

describe('notifications', () => {
  it('come newest first unless asked otherwise', async () => {
    expect(await ids('')).toEqual([1103, 1102, 1101]);
    expect(await ids('?ordering=id')).toEqual([1101, 1102, 1103]);
    expect(await ids('?ordering=-dismissed_at')).toEqual([1103, 1102, 1101]);
  });

  it('are filtered by whether they are dismissed, and by type', async () => {
    expect(await ids('?dismissed_at__isnull=True')).toEqual([1103, 1102]);
    expect(await ids('?dismissed_at__isnull=false')).toEqual([1101]);
    expect(await ids('?type=too_much_bandwidth_too_little_proxies')).toEqual([1102, 1101]);
  });

  it('are refused in an order that is not documented', async () => {
    expect(await call('GET', '/api/v2/notification/?ordering=type', { as: 'paid' })).toMatchObject({ status: 400 });
  });
});

describe('payment methods, transactions and pending payments', () => {
  it('are filtered by any field of theirs', async () => {
    expect(values(await list('payment/method/?brand=visa'), 'id')).toEqual([1073, 1071]);
    expect(values(await list('payment/method/?state='), 'id')).toEqual([1073]);
    expect(values(await list('payment/pending/?status=failed'), 'id')).toEqual([1302]);
    expect(values(await list('payment/pending/?completed_at__isnull=true'), 'id')).toEqual([1303, 1302]);
    expect((await list('payment/transaction/?amount__gte=20&amount__lte=30')).count).toBeGreaterThan(0);
    expect((await list('payment/transaction/?created_at__gte=2026-06-01T00:00:00-07:00')).count).toBe(2);
    expect((await list('payment/transaction/?unknown=1')).count).toBe(30);
  });

  it('are ordered by any field of theirs, and newest first otherwise', async () => {
    expect(values(await list('payment/method/'), 'id')).toEqual([1073, 1072, 1071]);
    expect(values(await list('payment/method/?ordering=last4'), 'last4')).toEqual(['0002', '4242', '4444']);
    const amounts = values(await list('payment/transaction/?ordering=-amount&page_size=100'), 'amount') as number[];
    expect(amounts).toEqual(amounts.toSorted((a, b) => b - a));
    expect(values(await list('payment/method/?ordering=nothing'), 'id')).toEqual([1073, 1072, 1071]);
  });

  it('show refunds', async () => {
    const { results } = await list('payment/transaction/?refund_amount__gt=0');
    expect(results.length).toBeGreaterThan(0);
    for (const { refund_date: refundedAt } of results) expect(refundedAt).not.toBeNull();
  });
});
