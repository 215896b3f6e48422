import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { type Asking, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { postIds } from '../../support/table.ts';
import { answer } from '../../support/upstream.ts';
import { DAY, FIRST, IN_PROGRESS, REUSED, summaryOf } from './helpers.ts';

const BUY = 'purchasePlan';
const PLAN = '{"term":"monthly","proxy_countries":{"US":5,"FR":1}}';
/** The same, printed otherwise. */
const REPRINTED =
  String.raw` { "proxy_countries" : {"FR":1,` + '\n' + String.raw`"\u0055S":5}, "\u0074erm":"month\u006cy"} `;
const OTHER = '{"term":"yearly","proxy_countries":{"US":5,"FR":1}}';

everywhere(says('Writes are sent once.'), async ({ ask, upstream, me }) => {
  for (const id of ['createApiKey', 'deleteIpAuthorization', 'updateReferralConfig'] as const)
    for (const own of [{}, { key: `key-of-${id}` }]) {
      upstream.next(id, answer(503));
      expect((await ask(id, own)).status).toBe(503);
    }
  expect(upstream.callsOf(me)).toHaveLength(6);
});

everywhere(
  says('the same key and body within 24 h → the first answer with Idempotency-Replayed: true'),
  async ({ ask, upstream, me }) => {
    const first = await ask(BUY, { key: 'key', body: PLAN });
    expect([first.status, first.version, first.cache]).toEqual([200, 2, 'portico; fwd=method']);
    expect(first.headers.has('idempotency-replayed')).toBe(false);
    for (const body of [PLAN, REPRINTED, PLAN]) {
      const again = await ask(BUY, { key: 'key', body });
      expect(summaryOf(again)).toBe(`${summaryOf(first)} replayed`);
      expect([again.cache, again.headers.get('content-type')]).toEqual([null, first.headers.get('content-type')]);
    }
    expect(upstream.callsOf(me).map(({ body, headers }) => [body, headers['idempotency-key']])).toEqual([
      [PLAN, 'key'],
    ]);
  },
);

everywhere(says('another body → 422'), async ({ ask, upstream, me }) => {
  const first = await ask(BUY, { key: 'key', body: PLAN });
  expect(summaryOf(await ask(BUY, { key: 'key', body: OTHER }))).toBe(REUSED);
  expect(summaryOf(await ask('createApiKey', { key: 'key', body: '{}' }))).toBe(REUSED);
  expect(summaryOf(await ask(BUY, { key: 'key', body: PLAN }))).toBe(`${summaryOf(first)} replayed`);
  expect(upstream.callsOf(me)).toHaveLength(1);
});

everywhere(says('still under way → 409 with Retry-After: 1'), async ({ ask, upstream, me }) => {
  const held = upstream.hold(BUY);
  const first = ask(BUY, { key: 'key', body: PLAN });
  await held.call;
  for (let time = 0; time < 3; time++) expect(summaryOf(await ask(BUY, { key: 'key', body: PLAN }))).toBe(IN_PROGRESS);
  expect(summaryOf(await ask(BUY, { key: 'key', body: OTHER }))).toBe(REUSED);
  held.release();
  const seen = summaryOf(await first);
  expect(summaryOf(await ask(BUY, { key: 'key', body: PLAN }))).toBe(`${seen} replayed`);
  expect(upstream.callsOf(me)).toHaveLength(1);
});

everywhere(
  `${says('body within 24 h →')}: from the first request on, and then it is free`,
  async ({ ask, upstream, pass, me }) => {
    const held = upstream.hold(BUY);
    const first = ask(BUY, { key: 'key' });
    await held.call;
    await pass(4);
    held.release();
    const seen = `${summaryOf(await first)} replayed`;
    for (const seconds of [DAY / 2, DAY / 2 - 5 - 60]) {
      await pass(seconds);
      expect(summaryOf(await ask(BUY, { key: 'key' }))).toBe(seen);
    }
    await pass(61);
    const second = await ask(BUY, { key: 'key', body: OTHER });
    expect(summaryOf(second)).toMatch(FIRST);
    expect(summaryOf(await ask(BUY, { key: 'key', body: OTHER }))).toBe(`${summaryOf(second)} replayed`);
    expect(upstream.callsOf(me)).toHaveLength(2);
  },
  { time: true },
);

everywhere(says('Idempotency-Key (1 to 255 visible ASCII characters)'), async ({ ask, upstream, me }) => {
  for (const key of ['', '   ', 'k'.repeat(256), 'a b', 'a\tb', 'caf\u00e9', 'a, a']) {
    const { status, code, json } = await ask(BUY, { key });
    expect([key, status, code]).toEqual([key, 400, 'validation_failed']);
    expect(json.errors).toMatchObject([{ field: 'Idempotency-Key' }]);
  }
  expect(upstream.callsOf(me)).toEqual([]);
  const visible = Array.from({ length: 94 }, (_, at) => String.fromCharCode(0x21 + at)).join('');
  const good = ['k', 'K', 'k'.repeat(255), visible, '"8e03978e-40d5"', '__proto__'];
  for (const key of good) {
    const first = await ask('createApiKey', { key });
    expect(summaryOf(await ask('createApiKey', { key: ` ${key}\t` }))).toBe(`${summaryOf(first)} replayed`);
  }
  expect(upstream.callsOf(me).map(({ headers }) => headers['idempotency-key'])).toEqual(good);
});

const { ask, upstream } = openGateway();

describe(says('on any POST of section 2:'), () => {
  test.each(postIds)('%s, and each key keeps its own answer', async (id) => {
    const token = secret();
    const keys = [secret(), secret()]; // those without a credential have the keys of their address
    const bodies = [answer(202, '{"id":9007199254740993123,"amount":25.0}'), answer(204)];
    upstream.next(id, ...bodies);
    const seen = ['202 {"id":9007199254740993123,"amount":25.0}', '204'];
    for (const [at, key] of keys.entries()) expect(summaryOf(await ask(id, { token, key }))).toBe(seen[at]);
    for (const [at, key] of keys.entries())
      expect(summaryOf(await ask(id, { token, key }))).toBe(`${seen[at]} replayed`);
    expect(upstream.callsTo(id)).toHaveLength(2);
    expect(summaryOf(await ask(id, { token, key: 'a b' }))).toBe('400 validation_failed');
  });

  test('other methods do not look at it, and it stays here', async () => {
    const token = secret();
    for (const id of ['updateReferralConfig', 'deletePaymentMethod', 'getApiKey'] as const)
      for (const key of ['one', 'one', 'a b', 'k'.repeat(300)])
        expect((await ask(id, { token, key })).status).toBeLessThan(300);
    expect(upstream.callsOf(token)).toHaveLength(12);
    for (const { headers } of upstream.callsOf(token)) expect(headers).not.toHaveProperty('idempotency-key');
  });
});

type Request = Asking & { readonly id: OperationId };

/** What is compared: each is another request than the one before it. */
describe(says('the same key and body'), () => {
  const KEY = 'key';

  test.each<[string, readonly Request[]]>([
    [
      'the number',
      ['25', '25.0', '9007199254740993', '9007199254740992'].map((n) => ({ id: BUY, body: `{"x":${n}}` })),
    ],
    ['the operation', ([BUY, 'createApiKey', 'startIdVerification'] as const).map((id) => ({ id, body: '{}' }))],
    ['the id', ['5', '6'].map((n) => ({ id: 'refreshSubuser', path: `/api/v2/subuser/${n}/refresh/` }))],
    [
      'the query',
      ['3', '4'].map((n) => ({ id: 'refreshProxyList', path: `/api/v2/proxy/list/refresh/?plan_id=${n}` })),
    ],
    [
      'a body that nobody asked for',
      ['{"a":1}', '{"a":', 'plain text'].map((body) => ({ id: 'refreshSubuser', body })),
    ],
  ])('%s', async (_, requests) => {
    for (const [at, { id, ...asking }] of requests.entries()) {
      const token = secret();
      const first = await ask(id, { token, key: KEY, ...asking });
      expect(first.status).toBeLessThan(300);
      for (const [other, { id: otherId, ...otherAsking }] of requests.entries())
        expect(summaryOf(await ask(otherId, { token, key: KEY, ...otherAsking })), `${other} after ${at}`).toBe(
          other === at ? `${summaryOf(first)} replayed` : REUSED,
        );
    }
  });

  test('without a credential has those of its address, even where a credential reads like one', async () => {
    const key = secret();
    const register = async (address: string) =>
      summaryOf(await ask('registerSocial', { key, address, token: 'address' }));
    const first = await register('192.0.2.1');
    for (const other of ['192.0.2.2', '2001:db8::1']) expect(await register(other)).toMatch(FIRST);
    expect(await register('192.0.2.1')).toBe(`${first} replayed`);
    expect(summaryOf(await ask(BUY, { key, token: 'address', address: '192.0.2.1' }))).toMatch(FIRST);
  });
});

/** After each of these the good request with the key is the first one. */
test.each<readonly [string, string, Asking]>([
  ['no JSON', '400 malformed_json', { body: '{"term":' }],
  ['another type', '415 unsupported_media_type', { body: '{}', headers: { 'content-type': 'text/plain' } }],
  ['a body that is too large', '413 payload_too_large', { body: `{"a":"${'a'.repeat(70_000)}"}` }],
  ['no usable credential', '401 unauthenticated', { token: null }],
])(`${says('What proves that nothing happened')}: refused here for %s`, async (_, seen, asking) => {
  const token = secret();
  expect(summaryOf(await ask(BUY, { token, key: 'key', ...asking }))).toBe(seen);
  expect(upstream.callsOf(token)).toEqual([]);
  expect(summaryOf(await ask(BUY, { token, key: 'key' }))).toMatch(FIRST);
});
