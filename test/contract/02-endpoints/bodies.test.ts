import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { exampleInput } from '../../support/examples.ts';
import { openGateway } from '../../support/gateway.ts';
import { expectProblem } from '../../support/problem.ts';
import { email, secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';

const social = { provider: 'p', code: 'c', redirect_uri: 'https://app.example/cb', tos_accepted: true };
const large = (bytes: number) => `{"x":"${'x'.repeat(bytes - 8)}"}`;

everywhere(
  says(
    '**Body** checked against the document: `malformed_json` 400, `unsupported_media_type` 415, `validation_failed` 400 with an entry for each bad field.',
  ),
  async ({ ask, upstream, me }) => {
    const text = { headers: { 'content-type': 'text/plain' } };
    expectProblem(await ask('createApiKey', { body: '{"label":' }), { status: 400, code: 'malformed_json' });
    expectProblem(await ask('createApiKey', { body: '{}', ...text }), { status: 415, code: 'unsupported_media_type' });
    expectProblem(await ask('createApiKey', { body: large(65_537) }), { status: 413, code: 'payload_too_large' });
    const bad = await ask('updateReferralConfig', { body: { mode: 1, wallet_payout_email: 2 } });
    const { errors } = expectProblem(bad, { status: 400, code: 'validation_failed' });
    expect(errors.map(({ field }) => field)).toEqual(['mode', 'wallet_payout_email']);
    expect(upstream.callsOf(me)).toEqual([]);
    expect((await ask('createApiKey', { body: large(65_536) })).status).toBe(200);
  },
);

everywhere(
  says('Unknown fields of a purchase go through, those of a PATCH of the referral config do not.'),
  async ({ ask, upstream, me }) => {
    const body = '{"pool_filter":"x","x":{"__proto__":1},"__proto__":{"y":2},"n":9007199254740993123,"b":25.0}';
    expect((await ask('purchasePlan', { body })).status).toBe(200);
    const got = await ask('updateReferralConfig', { body: '{"mode":"credits","referral_code":"x"}' });
    const { errors } = expectProblem(got, { status: 400, code: 'validation_failed' });
    expect(JSON.stringify(errors)).toContain('referral_code');
    expect(upstream.callsOf(me).map((one) => one.body)).toEqual([body]);
  },
);

const { ask, upstream } = openGateway();

const errorsOf = async (id: OperationId, body: unknown) => {
  const { errors } = expectProblem(await ask(id, { body }), { status: 400, code: 'validation_failed' });
  expect(upstream.calls).toEqual([]);
  return errors;
};

const wordsOf = async (id: OperationId, body: unknown) =>
  (await errorsOf(id, body)).map(({ field, message }) => `${field}: ${message}`);

const names = (many: number, value: string) =>
  Array.from({ length: many }, (_, at) => `"${at.toString(36)}":${value}`).join(',');

const REFUSED: readonly (readonly [id: OperationId, body: unknown, fields: readonly (string | null)[]])[] = [
  ['updateReferralConfig', '{}', [null]],
  ['updateReferralConfig', { mode: 'cash' }, ['mode']],
  ['updateReferralConfig', { wallet_payout_email: 'someone' }, ['wallet_payout_email']],
  ['registerSocial', { ...social, tos_accepted: false }, ['tos_accepted']],
  ['registerSocial', { ...social, code: '', provider: 1 }, ['provider', 'code']],
  ['registerSocial', {}, ['provider', 'code', 'redirect_uri', 'tos_accepted']],
  ['purchasePlan', { proxy_countries: { US: '5' } }, ['proxy_countries.US']],
  ['purchasePlan', { bandwidth_limit: 'much' }, ['bandwidth_limit']],
  ['purchasePlan', { is_high_concurrency: 1, term: 2 }, ['is_high_concurrency', 'term']],
  ['startIdVerification', '{"__proto__":1}', ['__proto__']],
];

describe(says('`validation_failed` 400 with an entry for each bad field'), () => {
  test.each(REFUSED)('%s %j', async (id, body, fields) => {
    expect((await errorsOf(id, body)).map(({ field }) => field)).toEqual(fields);
  });

  test('in words, not in those of a validator, which never say what the bad value was', async () => {
    await errorsOf('updateReferralConfig', { wallet_payout_email: `${secret('value')} at somewhere` });
    expect(await wordsOf('registerSocial', { provider: '', code: 5, tos_accepted: false })).toEqual([
      'provider: must not be empty',
      'code: expected a text',
      'redirect_uri: is missing',
      'tos_accepted: expected true',
    ]);
    for (const body of ['[]', '"text"', '1', 'null', 'true'])
      expect(await wordsOf('createApiKey', body)).toEqual(['null: expected an object']);
  });

  test.each([
    ['fields', `{${names(6_400, '0')}}`],
    ['keys of a map', `{"proxy_countries":{${names(5_000, '""')}}}`],
    ['items', `{"x":[${'0,'.repeat(30_000)}0]}`],
    ['objects', `{"x":[${'{},'.repeat(20_000)}{}]}`],
  ])('but one for too many %s', async (_, body) => {
    expect(await errorsOf('purchasePlan', body)).toEqual([
      { code: 'too_big', message: expect.stringContaining('1000'), field: null },
    ]);
  });
});

describe(says('`malformed_json` 400'), () => {
  test('for what is no JSON, or too deep', async () => {
    const deep = `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
    for (const body of ['mode=credits', '{"mode"', '{"a":1,}', "{'a':1}", '{"a":"\n"}', '', deep])
      expectProblem(await ask('updateReferralConfig', { body }), { status: 400, code: 'malformed_json' });
    expect(upstream.calls).toEqual([]);
  });

  test('for bytes that are no UTF-8', async () => {
    const { app, upstream: mine } = openGateway();
    const headers = { authorization: `Token ${secret()}`, 'content-type': 'application/json' };
    for (const bad of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82]]) {
      const body = Buffer.concat([Buffer.from('{"label":"'), Buffer.from(bad), Buffer.from('"}')]);
      const got = await app.request(exampleInput('createApiKey').path, { method: 'POST', headers, body });
      expect([got.status, mine.calls]).toEqual([400, []]);
    }
  });
});

test.each(['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonx', ''])(
  `${says('`unsupported_media_type` 415')}: %j`,
  async (type) => {
    const got = await ask('createApiKey', { body: '{}', headers: { 'content-type': type } });
    expectProblem(got, { status: 415, code: 'unsupported_media_type' });
    expect(upstream.calls).toEqual([]);
  },
);

const TAKEN: readonly (readonly [id: OperationId, body: string])[] = [
  ['updateReferralConfig', `{"wallet_payout_email":"${email()}"}`],
  ['updateReferralConfig', '{"mode":"credits","wallet_payout_email":null}'],
  ['registerSocial', JSON.stringify({ ...social, marketing_email_accepted: false, x_new: [1] })],
  ['loginSocial', JSON.stringify({ ...social, tos_accepted: undefined })],
  ['purchasePlan', '{}'],
  ['purchasePlan', '{"payment_method":"default","proxy_countries":{"US":5,"ZZ":0}}'],
  ['purchasePlan', `{${Array.from({ length: 900 }, (_, at) => `"x${at}":0`).join(',')}}`],
  ['startIdVerification', ''],
  ['createApiKey', String.raw`{"label":"é\ud83d\ude00","x":1}`],
];

test.each(TAKEN)(`${says('**Body** checked against the document')}: %s takes %s`, async (id, body) => {
  for (const charset of ['utf-8', '"UTF8"'])
    expect((await ask(id, { body, headers: { 'content-type': `Application/JSON; charset=${charset}` } })).status).toBe(
      200,
    );
  expect(upstream.calls.map((one) => one.body)).toEqual([body, body]);
});
