import { afterAll, describe, expect, test } from 'vitest';
import { expectCommonHeaders, expectProblem } from '../http/problem.ts';
import { exposition } from './exposition.ts';
import { openMeasured, READS, REQUESTS } from './helpers.ts';
import { killAll, startNode } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { leaksIn } from '../support/secrets.ts';

const SCRAPE = { path: '/metrics' } as const;

afterAll(killAll);

describe('/metrics', () => {
  test('answers on the admin listener in the text format, with the headers of all answers', async () => {
    const stage = await openMeasured();
    const answer = await stage.admin(SCRAPE);
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' },
    });
    expectCommonHeaders(answer);
    const { families } = exposition(answer.text);
    expect(new Set([...families.values()].map(({ type }) => type))).toEqual(new Set(['counter', 'gauge', 'histogram']));
    expect([...families].filter(([, { help }]) => help === '')).toEqual([]);
    expect([...families.keys()]).toContain('nodejs_eventloop_lag_p99_seconds');
  });

  test('is an unknown endpoint on the public listener, whatever the method', async () => {
    const stage = await openMeasured();
    for (const method of ['GET', 'POST', 'DELETE'])
      expectProblem(await stage.call({ ...SCRAPE, method }), {
        status: 404,
        code: 'unknown_endpoint',
        instance: '/metrics',
      });
    expect(await stage.call({ ...SCRAPE, method: 'HEAD' })).toMatchObject({ status: 404, text: '' });
  });

  test('takes GET and HEAD only', async () => {
    const { admin } = await openMeasured();
    expect(await admin({ ...SCRAPE, method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    const refused = await admin({ ...SCRAPE, method: 'DELETE' });
    expectProblem(refused, { status: 405, code: 'method_not_allowed' });
    expect(refused.headers['allow']).toBe('GET, HEAD');
  });

  test('names no credential and no account', async () => {
    const stage = await openMeasured();
    await stage.ask('getSubscription');
    await stage.ask('purchasePlan', { headers: { 'Idempotency-Key': stage.token } });
    const account = stage.gateway.lines.find(({ msg }) => msg === 'request')?.account;
    const { text } = await stage.admin(SCRAPE);
    expect(account).toMatch(/./);
    expect(text).not.toContain(account);
    expect(leaksIn(text)).toEqual([]);
  });

  test('counts what the gateway does for clients: no probe, no scrape, no other gateway in the process', async () => {
    const [stage, other] = await Promise.all([openMeasured(), openMeasured()]);
    await other.ask('getSubscription');
    for (const path of ['/metrics', '/readyz', '/nowhere']) await stage.admin({ path });
    const scraped = await stage.scrape();
    expect(scraped.value(REQUESTS)).toBe(0);
    expect(scraped.value(READS)).toBe(0);
    expect((await other.scrape()).value(REQUESTS)).toBe(1);
  });

  test('is on the admin port of the process, and not on its public one', async () => {
    const { url, adminUrl } = await startNode({});
    expect(await call(url, { path: '/bff/v1/account-overview', token: 'sandbox-paid-key' })).toMatchObject({
      status: 200,
    });
    expect(await call(url, SCRAPE)).toMatchObject({ status: 404 });
    const scraped = exposition((await call(adminUrl, SCRAPE)).text);
    expect(scraped.value(REQUESTS, { operation: 'getAccountOverview' })).toBe(1);
    expect(scraped.value(REQUESTS)).toBe(2);
  });
});
