import { describe, expect, it } from 'vitest';
import { createClient, DAY_SECONDS, START } from './client.ts';
import type { Page } from './client.ts';

const at = (days: number) => encodeURIComponent(new Date(START + days * DAY_SECONDS * 1000).toISOString());

describe('sub-users', () => {
  it('are refreshed when they have a proxy list of their own', async () => {
    const { call, sandbox } = createClient();
    sandbox.advanceClock(3600);
    const { json } = await call('POST', '/api/v2/subuser/1081/refresh/', { as: 'paid' });
    expect(json).toMatchObject({ id: 1081, updated_at: '2026-06-09T12:50:08.101337-07:00' });
  });

  it('are not when they have none, under a field that is called detail', async () => {
    const { call } = createClient();
    const { json, status } = await call('POST', '/api/v2/subuser/1082/refresh/', { as: 'paid' });
    expect([status, json]).toMatchObject([400, { detail: [{ code: 'custom_proxy_list_required' }] }]);
  });
});

describe('plans', () => {
  it('have what belongs to them', async () => {
    const { call, get } = createClient();
    expect(await get('/api/v2/proxy/ipauthorization/1093/?plan_id=1002')).toMatchObject({
      id: 1093,
      last_used_at: null,
    });
    expect(await call('GET', '/api/v2/proxy/ipauthorization/1093/', { as: 'paid' })).toMatchObject({ status: 404 });
    expect(await get('/api/v2/proxy/ipauthorization/1091/?plan_id=1003')).toMatchObject({ id: 1091 });
  });

  it('are refused when they are not the caller’s, or no number', async () => {
    const { call } = createClient();
    const foreign = await call('GET', '/api/v2/subuser/1081/?plan_id=3003', { as: 'paid' });
    expect(foreign).toMatchObject({ status: 400, json: { plan_id: [{ code: 'invalid_choice' }] } });
    const wrong = await call('GET', '/api/v2/subuser/1081/?plan_id=x', { as: 'paid' });
    expect(wrong).toMatchObject({ status: 400, json: { plan_id: [{ message: 'expected an integer' }] } });
  });
});

describe('IP authorizations', () => {
  it('are gone once deleted', async () => {
    const { call } = createClient();
    const path = '/api/v2/proxy/ipauthorization/1091/';
    expect(await call('DELETE', path, { as: 'paid' })).toMatchObject({ status: 204, text: '' });
    expect(await call('GET', path, { as: 'paid' })).toMatchObject({ status: 404 });
    expect(await call('DELETE', path, { as: 'paid' })).toMatchObject({ status: 404 });
  });

  it('are not found by an id that is no number', async () => {
    const { call } = createClient();
    expect(await call('GET', '/api/v2/proxy/ipauthorization/some-id/', { as: 'paid' })).toMatchObject({
      status: 404,
      json: { detail: 'Not found.' },
    });
  });
});

describe('the list refresh', () => {
  it('spends the refreshes of the plan, and is then refused', async () => {
    const { call } = createClient();
    const refresh = () => call('POST', '/api/v2/proxy/list/refresh/', { as: 'paid' });
    expect([(await refresh()).status, (await refresh()).status]).toEqual([204, 204]);
    const { json, status } = await refresh();
    expect([status, json]).toMatchObject([400, { non_field_errors: [{ code: 'no_on_demand_refreshes_available' }] }]);
  });

  it('is refused on the free plan', async () => {
    const { call } = createClient();
    expect(await call('POST', '/api/v2/proxy/list/refresh/', { as: 'nocard' })).toMatchObject({ status: 400 });
  });
});

const instants = ({ results }: Page) => results.map(({ timestamp }) => Date.parse(String(timestamp)));

describe('activity', () => {
  const { call, get } = createClient();
  const activity = (query = '') => get<Page>(`/api/v2/proxy/activity/?page_size=100&${query}`);
  const refusal = async (query: string) => {
    const { json, status } = await call('GET', `/api/v2/proxy/activity/?${query}`, { as: 'paid' });
    expect(status).toBe(400);
    return json;
  };

  it('covers the last six days, newest first', async () => {
    const page = await activity();
    const times = instants(page);
    expect(page.count).toBe(72);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(START - 6 * DAY_SECONDS * 1000);
    expect(Math.max(...times)).toBeLessThanOrEqual(START);
  });

  it('pages by starting_after, without previous', async () => {
    const first = await get<Page>('/api/v2/proxy/activity/');
    expect([first.count, first.results.length, 'previous' in first]).toEqual([72, 25, false]);
    const cursor = String(first.results.at(-1)?.['timestamp']);
    expect(first.next).toBe(`http://upstream.test/api/v2/proxy/activity/?starting_after=${encodeURIComponent(cursor)}`);
    const seen = new Set(instants(first));
    let next = first.next;
    while (next) {
      const page: Page = await get<Page>(next.replace('http://upstream.test', ''));
      for (const time of instants(page)) seen.add(time);
      next = page.next;
    }
    expect(seen.size).toBe(72);
  });

  it('goes back ninety days and no further', async () => {
    expect((await activity(`timestamp__gte=${at(-90)}`)).count).toBe(1080);
    expect(await refusal(`timestamp__gte=${at(-91.5)}`)).toMatchObject([{ code: 'timestamp_too_old' }]);
  });

  it('adds a projected record for each hour to come, up to the end of the subscription', async () => {
    const page = await activity(`timestamp__lte=${at(1.01)}`);
    expect(page.count).toBe(72 + 24);
    expect(instants(page).filter((time) => time > START)).toHaveLength(24);
    expect(await refusal(`timestamp__lte=${at(19)}`)).toEqual([
      { message: expect.any(String), code: 'timestamp_after_end_date' },
    ]);
  });

  it('refuses a window that ends before it begins, and what is no time', async () => {
    expect(await refusal(`timestamp__gte=${at(-1)}&timestamp__lte=${at(-2)}`)).toMatchObject([
      { code: 'invalid_range' },
    ]);
    expect(await refusal('timestamp__gte=yesterday')).toMatchObject({
      timestamp__gte: [{ message: 'expected an ISO 8601 date-time' }],
    });
  });

  it('is filtered by error reason, where * is any', async () => {
    const any = await activity('error_reason=*');
    const reasons = new Set(any.results.map(({ error_reason: reason }) => reason));
    expect(reasons).toEqual(new Set(['client_connect_forbidden_host', 'server_connect_timeout']));
    const one = await activity('error_reason=server_connect_timeout');
    expect([one.count > 0, one.count < any.count]).toEqual([true, true]);
  });

  it('is filtered by bytes, and refuses what is no number with a bare text', async () => {
    const { results } = await activity('bytes__gte=1000&bytes__lte=90000');
    expect(results.length).toBeGreaterThan(0);
    for (const { bytes } of results) expect([Number(bytes) >= 1000, Number(bytes) <= 90_000]).toEqual([true, true]);
    expect(await refusal('bytes__gte=many')).toBe('bytes__gte must be a number of bytes.');
  });

  it('is searched, and filtered by verification category', async () => {
    const found = await activity('search=SHOP.example');
    expect(new Set(found.results.map(({ hostname }) => hostname))).toEqual(new Set(['shop.example.org']));
    const category = await activity('verification_category=acceptable_use_violation');
    expect(new Set(category.results.map(({ error_reason: reason }) => reason))).toEqual(
      new Set(['client_connect_forbidden_host']),
    );
    expect((await activity('verification_category=other')).count).toBe(0);
  });

  it('belongs to a plan, and is empty for an account that sends no requests', async () => {
    expect((await activity('plan_id=1002')).count).toBe(0);
    expect(await get('/api/v2/proxy/activity/', 'nocard')).toEqual({ count: 0, next: null, results: [] });
  });
});
