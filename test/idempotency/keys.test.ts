import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { inProcess } from '../gateway/in-process.ts';
import { expectProblem } from '../http/problem.ts';
import { DAY_SECONDS, differentFrom, gist, good, goodGist, openShop, REUSED, type Shop, UNKNOWN } from './helpers.ts';
import type { TextAnswer } from '../support/http.ts';
import { callOf } from '../support/marked.ts';
import { rawRequest } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { accountIds, bodiedIds, postIds, socialIds } from '../support/table.ts';
import { exampleRequest } from '../support/examples.ts';

const ID: OperationId = 'purchasePlan';
const EXAMPLE = String(exampleRequest(ID).body);

const rawPurchase = ({ gateway, token }: Shop, keyLines: string) =>
  rawRequest(
    gateway.port,
    Buffer.from(
      `POST ${exampleRequest(ID).path} HTTP/1.1\r\nHost: portico.test\r\nAuthorization: Token ${token}\r\n${keyLines}` +
        `Content-Type: application/json\r\nContent-Length: ${EXAMPLE.length}\r\n\r\n${EXAMPLE}`,
      'latin1',
    ),
  );

describe('a key', () => {
  test.each([
    ['of nothing', 'Idempotency-Key:\r\n'],
    ['of spaces', 'Idempotency-Key:   \r\n'],
    ['of 256 characters', `Idempotency-Key: ${'k'.repeat(256)}\r\n`],
    ['with a space in it', 'Idempotency-Key: a b\r\n'],
    ['with a tab in it', 'Idempotency-Key: a\tb\r\n'],
    ['beyond ASCII', 'Idempotency-Key: caf\u00e9\r\n'],
    ['in UTF-8', `Idempotency-Key: ${Buffer.from('ключ').toString('latin1')}\r\n`],
    ['that comes twice', 'Idempotency-Key: a\r\nIdempotency-Key: a\r\n'],
    ['besides another one', 'Idempotency-Key: a\r\nidempotency-key: b\r\n'],
    ['that names one of ours', 'Idempotency-Key: equal abc\r\n'],
  ])('%s is refused, and nothing is sent', async (_, lines) => {
    const shop = await openShop();
    const answer = await rawPurchase(shop, lines);
    const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed' });
    expect(errors).toMatchObject([{ field: 'Idempotency-Key' }]);
    expect(shop.upstream.calls).toEqual([]);
  });

  test.each([
    ['of one character', 'k'],
    ['of 255 characters', 'k'.repeat(255)],
    ['of every visible character', Array.from({ length: 94 }, (_, at) => String.fromCharCode(0x21 + at)).join('')],
    ['in quotes', '"8e03978e-40d5-43dd-bc93-6894a57f9324"'],
    ['that objects have by themselves', '__proto__'],
  ])('%s will do, and gets upstream as it is', async (_, key) => {
    const shop = await openShop();
    shop.script(ID, good(ID, 1));
    expect((await rawPurchase(shop, `Idempotency-Key:  ${key}\t\r\n`)).status).toBe(201);
    expect(gist(await shop.ask(ID, { key }))).toBe(goodGist(ID, 1, { isReplay: true }));
    expect(shop.upstream.calls.map(({ headers }) => headers['idempotency-key'])).toEqual([key]);
  });

  test('counts by its case', async () => {
    const shop = await openShop();
    shop.script(ID, good(ID, 1), good(ID, 2));
    expect(gist(await shop.ask(ID, { key: 'key' }))).toBe(goodGist(ID, 1));
    expect(gist(await shop.ask(ID, { key: 'Key' }))).toBe(goodGist(ID, 2));
  });

  test.each(postIds)('that is none is refused for %s', async (id) => {
    const shop = await openShop();
    expect(gist(await shop.ask(id, { key: 'a b' }))).toBe('400 validation_failed');
    expect(shop.upstream.calls).toEqual([]);
  });

  test.each(['updateReferralConfig', 'deletePaymentMethod', 'deleteIpAuthorization'] as const)(
    'means nothing to %s, good or bad, and stays here',
    async (id) => {
      const shop = await openShop();
      const keys = [shop.key, shop.key, 'a b', 'k'.repeat(300)];
      shop.script(id, ...keys.map((_, index) => json(200, `{"n":${index}}`)));
      for (const [index, key] of keys.entries())
        expect(await shop.ask(id, { key })).toMatchObject({ status: 200, json: { n: index } });
      for (const { headers } of shop.upstream.calls) expect(headers).not.toHaveProperty('idempotency-key');
      expect(shop.upstream.calls).toHaveLength(keys.length);
    },
  );

  test('means nothing to a read', async () => {
    const shop = await openShop();
    shop.script('getSubscription', json(200, '{"id":1}'));
    expect(await shop.ask('getSubscription', { key: 'a b' })).toMatchObject({ status: 200 });
    expect(shop.upstream.calls[0]?.headers).not.toHaveProperty('idempotency-key');
  });
});

/** Comes back with the code of the refusal, after which the good request is the first one. */
const refused = async (id: OperationId, ask: (shop: Shop) => Promise<TextAnswer>) => {
  const shop = await openShop();
  const seen = gist(await ask(shop));
  expect(shop.upstream.calls).toEqual([]);
  shop.script(id, good(id, 1));
  expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
  return seen;
};

describe('a key is not used by a request that is refused for itself,', () => {
  test.each(bodiedIds)('%s with a body that is no JSON', async (id) => {
    expect(await refused(id, (shop) => shop.keyed(id, { body: '{"term":' }))).toBe('400 malformed_json');
  });

  test.each(bodiedIds)('%s with a body that is no object', async (id) => {
    expect(await refused(id, (shop) => shop.keyed(id, { body: '[]' }))).toBe('400 validation_failed');
  });

  test.each(bodiedIds)('%s with a body of another type', async (id) => {
    const headers = { 'Content-Type': 'text/plain' };
    expect(await refused(id, (shop) => shop.keyed(id, { body: '{}', headers }))).toBe('415 unsupported_media_type');
  });

  test.each(postIds)('%s with a body that is too large', async (id) => {
    const body = `{"a":"${'a'.repeat(70_000)}"}`;
    expect(await refused(id, (shop) => shop.keyed(id, { body }))).toBe('413 payload_too_large');
  });

  test('a bad parameter', async () => {
    const path = '/api/v2/proxy/list/refresh/?plan_id=none';
    expect(await refused('refreshProxyList', (shop) => shop.keyed('refreshProxyList', { path }))).toBe(
      '400 validation_failed',
    );
  });

  test('no usable credential', async () => {
    expect(await refused(ID, (shop) => shop.keyed(ID, { headers: { authorization: 'Basic abc' } }))).toBe(
      '401 unauthenticated',
    );
  });
});

describe.each(postIds)('%s', (id) => {
  test('has its key for 24 hours from the first request on, and then it is free', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1), good(id, 2));
    await shop.keyed(id);
    for (const seconds of [DAY_SECONDS / 2, DAY_SECONDS / 2 - 1]) {
      shop.advance(seconds);
      expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    }
    shop.advance(1);
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 2));
    shop.advance(DAY_SECONDS - 1);
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 2, { isReplay: true }));
  });

  test('may be another request with the key when the day is over', async () => {
    const shop = await openShop();
    const other = differentFrom(id);
    shop.script(id, json(503));
    await shop.keyed(id);
    shop.advance(DAY_SECONDS - 1);
    expect(gist(await shop.keyed(id))).toBe(UNKNOWN);
    shop.advance(1);
    shop.upstream.once(({ target }) => target === other.path, good(id, 2));
    expect(gist(await shop.keyed(id, other))).toBe(goodGist(id, 2));
    expect(gist(await shop.keyed(id))).toBe(REUSED);
  });
});

describe.each(accountIds)('%s', (id) => {
  test('has keys of its account, whatever others do with the same ones', async () => {
    const shop = await openShop();
    const token = secret();
    shop.script(id, json(503), good(id, 2));
    expect(gist(await shop.keyed(id))).toBe('503 upstream_unavailable unknown');
    expect(gist(await shop.keyed(id, { token }))).toBe(goodGist(id, 2));
    expect(gist(await shop.keyed(id))).toBe(UNKNOWN);
    expect(gist(await shop.keyed(id, { token }))).toBe(goodGist(id, 2, { isReplay: true }));
  });

  test('has them whichever way the credential is written', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1));
    await shop.keyed(id);
    const answer = await shop.keyed(id, { headers: { authorization: `Bearer ${shop.token}` } });
    expect(gist(answer)).toBe(goodGist(id, 1, { isReplay: true }));
  });
});

describe.each(socialIds)('%s', (id) => {
  test('has keys of the client’s address, whatever credential comes along', async () => {
    let calls = 0;
    const gateway = inProcess({
      transport: () => Promise.resolve({ status: 200, headers: {}, body: { text: `{"token":"${++calls}"}` } }),
    });
    const { path, body } = exampleRequest(id);
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'one-key' };
    const ask = async (address: string, token = secret()) => {
      const answer = await gateway.ask(path, token, { method: 'POST', headers, body: String(body) }, address);
      return [await answer.json(), answer.headers.get('idempotency-replayed')] as readonly unknown[];
    };
    expect(await ask('192.0.2.1')).toEqual([{ token: '1' }, null]);
    expect(await ask('192.0.2.2')).toEqual([{ token: '2' }, null]);
    expect(await ask('192.0.2.1')).toEqual([{ token: '1' }, 'true']);
    expect(await ask('192.0.2.2')).toEqual([{ token: '2' }, 'true']);
    expect(await ask('2001:db8::1')).toEqual([{ token: '3' }, null]);
    await gateway.close();
  });

  test('has a key beside that of an account whose credential reads like an address', async () => {
    const shop = await openShop();
    const token = 'address';
    shop.script(id, good(id, 1));
    await shop.keyed(id, { token });
    shop.script(ID, good(ID, 2));
    expect(gist(await shop.keyed(ID, { token }))).toBe(goodGist(ID, 2));
    expect(shop.upstream.callsTo(callOf(id))[0]?.headers).not.toHaveProperty('authorization');
  });
});
