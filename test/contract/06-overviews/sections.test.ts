import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleBody, exampleRequest } from '../../support/examples.ts';
import { type Asked, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { ACCOUNT, BILLING, dataOf, LINES, REFERRAL, SECTIONS } from './helpers.ts';

/** Whole, value for value, in one call a section; and then from copies. */
const isMadeOf =
  (path: string, query: Readonly<Record<string, string>> = {}) =>
  async ({ call, upstream }: Asked) => {
    const sections = Object.entries(SECTIONS[path]!);
    const cold = await call(path);
    expect([cold.status, cold.cache]).toEqual([200, 'portico; fwd=miss']);
    expect(cold.text.startsWith(`{"data":${dataOf(path)},"errors":[],"meta":{"complete":true,`)).toBe(true);
    const states = sections.map(([name]) => [name, { state: 'fresh', age: expect.any(Number) as number }]);
    expect(cold.json.meta.sections).toEqual(Object.fromEntries(states));
    const targets = sections.map(([, id]) => exampleRequest(id).path + (query[id] ?? ''));
    expect(upstream.calls.map(({ target }) => target).toSorted()).toEqual(targets.toSorted());
    const warm = await call(path);
    expect([warm.json.data, warm.cache]).toEqual([cold.json.data, expect.stringMatching(/^portico; hit; ttl=\d+$/)]);
    const etag = cold.headers.get('etag')!;
    expect(await call(path, { headers: { 'If-None-Match': etag } })).toMatchObject({ status: 304, text: '' });
    expect(upstream.calls).toHaveLength(sections.length);
  };

const UNDISMISSED = { listNotifications: '?dismissed_at__isnull=True' };
everywhere(
  says(
    "| `/bff/v1/account-overview` | `subscription`*, `payment_method` (the subscription's), `notifications` (first page, not dismissed), `referral_config` |",
  ),
  isMadeOf(ACCOUNT, UNDISMISSED),
);
everywhere(
  says(
    '| `/bff/v1/billing-overview` | `subscription`*, `payment_method`, `transactions`, `pending_payments` (first pages) |',
  ),
  isMadeOf(BILLING),
);
everywhere(
  says('| `/bff/v1/referral-overview` | `referral_config`*, `credits`, `earn_outs` (first pages), `channels` |'),
  isMadeOf(REFERRAL),
);

everywhere(
  says('GET under `/bff/v1`, from the same cache as the endpoints, section by section'),
  async ({ ask, call, upstream }) => {
    await ask('listReferralCredits');
    await call(REFERRAL);
    expect(await ask('getReferralConfig')).toMatchObject({ cache: expect.stringContaining('hit'), version: 1 });
    expect(upstream.calls).toHaveLength(4);
    expect(upstream.callsTo('listReferralCredits')).toHaveLength(1);
  },
);

everywhere(says('Each section asked for is in `data`, value for value.'), async ({ call, upstream }) => {
  const text = '{"id":5,"n":25.0,"s":"0.20","big":9007199254740993123,"x":{"y":[1e2, 2.50]},"payment_method":null}';
  upstream.next('getSubscription', answer(200, text));
  expect((await call(`${ACCOUNT}?sections=subscription`)).text).toContain(`{"data":{"subscription":${text}},"errors":`);
});

const { ask, call, upstream } = openGateway();

test('links of pages point at the gateway', async () => {
  const links = { next: 'http://upstream.test/api/v2/payment/transaction/?page=3&x=a%20b', previous: null };
  upstream.next('listTransactions', answer(200, exampleBody('listTransactions', links)));
  const { text, json } = await call(BILLING, { token: secret() });
  expect(json.data.transactions.next).toBe('http://localhost/api/v2/payment/transaction/?page=3&x=a%20b');
  expect(text).not.toContain('upstream.test');
});

test('no-cache asks again and keeps that, no-store does neither; a failure and a write have one section asked for', async () => {
  const token = secret();
  const many = async (headers = {}) => {
    const before = upstream.calls.length;
    await call(REFERRAL, { token, headers });
    return upstream.calls.length - before;
  };
  const [none, anew] = [{ 'Cache-Control': 'no-store' }, { 'Cache-Control': 'no-cache' }];
  upstream.next('listEarnOuts', answer(500), answer(400));
  expect([await many(none), await many(), await many(), await many()]).toEqual([4, 4, 1, 0]);
  expect([await many(anew), await many(), await many(none)]).toEqual([4, 0, 4]);
  await ask('updateReferralConfig', { token });
  expect(await many()).toBe(1);
});

test('HEAD has the head, other methods are 405, and without a credential nobody is asked', async () => {
  const { headers } = await call(ACCOUNT);
  const head = await call(ACCOUNT, { method: 'HEAD' });
  expect([head.status, head.text, head.headers.get('etag')]).toEqual([200, '', headers.get('etag')]);
  const post = await call(ACCOUNT, { method: 'POST' });
  expect([post.code, post.headers.get('allow')]).toEqual(['method_not_allowed', 'GET, HEAD']);
  expect(await call(ACCOUNT, { token: null })).toMatchObject({ status: 401, code: 'unauthenticated' });
  expect(upstream.calls).toHaveLength(4);
});

const POLLUTION = '"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}';

test('with __proto__ in each object they are what they are: again, trimmed, as lines and as items of a batch', async () => {
  const token = secret();
  const ids = Object.values(SECTIONS[REFERRAL]!);
  const texts = ids.map((id) => {
    const text = exampleBody(id, id.startsWith('list') ? { next: null, previous: null } : {});
    return text.replaceAll('{', () => `{${POLLUTION},`).replaceAll(',}', '}');
  });
  for (const [at, id] of ids.entries()) upstream.next(id, answer(200, texts[at]!));
  const requests = ids.map((id) => ({ id, path: exampleRequest(id).path }));
  const all = [
    [REFERRAL, {}],
    [REFERRAL, {}],
    [REFERRAL, { headers: LINES }],
    ['/bff/v1/batch', { body: { requests } }],
  ] as const;
  for (const [path, asking] of all) {
    const { text } = await call(path, { token, ...asking });
    for (const own of texts) expect(text).toContain(`:${own}`);
  }
  const trimmed = await call(`${REFERRAL}?fields[referral_config]=id&fields[credits]=id`, { token });
  expect(trimmed.text).toMatch(/"referral_config":\{"id":\d+\}.*"results":\[\{"id":\d+\}\]/);
  for (const name of ['polluted', 'prototype']) expect({}).not.toHaveProperty(name);
});
