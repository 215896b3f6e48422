import { describe, expect, test } from 'vitest';
import { allOperations, type OperationId } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { email, secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

/** What a refused body is refused for. */
const errorsOf = async (id: OperationId, body: string) => {
  const { method, path } = exampleInput(id);
  const answer = await stage.call({ method, path, token: secret(), body });
  const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed', instance: path });
  expect(stage.upstream.calls).toEqual([]);
  return errors;
};

const badFields = async (id: OperationId, body: string) => (await errorsOf(id, body)).map(({ field }) => field);

/** The body that the upstream got. */
const accepted = async (id: OperationId, body: string | undefined) => {
  const { method, path } = exampleInput(id);
  stage.upstream.on(`${method} ${path}`, json(200, exampleBody(id)));
  const answer = await stage.call({ method, path, token: secret(), ...(body !== undefined && { body }) });
  expect({ status: answer.status, text: answer.text }).toEqual({ status: 200, text: exampleBody(id) });
  return stage.upstream.calls.at(-1)?.body;
};

describe('changing the referral config', () => {
  test.each([
    ['nothing', '{}', [null]],
    ['another mode', '{"mode":"cash"}', ['mode']],
    ['a mode that is null', '{"mode":null}', ['mode']],
    ['an address that is none', '{"wallet_payout_email":"someone"}', ['wallet_payout_email']],
    ['two bad fields', '{"mode":1,"wallet_payout_email":2}', ['mode', 'wallet_payout_email']],
  ])('refuses %s', async (_, body, fields) => {
    expect(await badFields('updateReferralConfig', body)).toEqual(fields);
  });

  test.each([
    ['referral_code', '{"mode":"credits","referral_code":"x"}'],
    ['id', '{"id":1}'],
    ['__proto__', '{"mode":"credits","__proto__":{"x":1}}'],
    ['__proto__', '{"__proto__":{"mode":"credits"}}'],
    ['constructor', '{"mode":"credits","constructor":{"prototype":{}}}'],
  ])('refuses %s and says so: %s', async (name, body) => {
    expect(JSON.stringify(await errorsOf('updateReferralConfig', body))).toContain(name);
  });

  test.each([
    ['a mode', '{"mode":"payout"}'],
    ['an address', `{"wallet_payout_email":"${email()}"}`],
    ['both', `{"mode":"credits","wallet_payout_email":null}`],
  ])('takes %s', async (_, body) => {
    expect(await accepted('updateReferralConfig', body)).toBe(body);
  });

  test('never says what the bad value was', async () => {
    const address = `${secret('value')} at somewhere`;
    const answer = await stage.call({
      method: 'PATCH',
      path: '/api/v2/referral/config/',
      token: secret(),
      body: { wallet_payout_email: address, mode: address },
    });
    expectProblem(answer, { status: 400, code: 'validation_failed' });
  });
});

describe('social registration', () => {
  const whole = { provider: 'p', code: secret('code'), redirect_uri: 'https://app.example/cb', tos_accepted: true };

  test.each([
    ['no acceptance of the terms', { ...whole, tos_accepted: undefined }, ['tos_accepted']],
    ['terms that are not accepted', { ...whole, tos_accepted: false }, ['tos_accepted']],
    ['terms accepted in words', { ...whole, tos_accepted: 'true' }, ['tos_accepted']],
    ['no code', { ...whole, code: undefined }, ['code']],
    ['an empty code', { ...whole, code: '' }, ['code']],
    ['a number for a provider', { ...whole, provider: 1 }, ['provider']],
    ['nothing', {}, ['provider', 'code', 'redirect_uri', 'tos_accepted']],
  ])('refuses %s', async (_, body, fields) => {
    expect(await badFields('registerSocial', JSON.stringify(body))).toEqual(fields);
  });

  test('takes a whole body and fields that nobody documented', async () => {
    const body = JSON.stringify({ ...whole, marketing_email_accepted: false, x_new: [1] });
    expect(await accepted('registerSocial', body)).toBe(body);
  });

  test('needs no acceptance to log in', async () => {
    const body = JSON.stringify({ ...whole, tos_accepted: undefined });
    expect(await accepted('loginSocial', body)).toBe(body);
  });
});

describe('a purchase', () => {
  test.each([
    [
      'with fields of the pricing endpoint',
      '{"pool_filter":"x","term":"yearly","bandwidth_limit":25.0,"x":9007199254740993123}',
    ],
    ['with nothing in it', '{}'],
    ['with a payment method by id', '{"payment_method":1071,"behavior":"anything"}'],
    ['with a payment method by name', '{"payment_method":"default","proxy_countries":{"US":5,"ZZ":0}}'],
    ['with hundreds of fields', `{${Array.from({ length: 900 }, (_, at) => `"x${at}":0`).join(',')}}`],
    ['with an own field called like a prototype', '{"x":{"__proto__":1},"__proto__":{"y":2}}'],
  ])('%s goes through as it came', async (_, body) => {
    expect(await accepted('purchasePlan', body)).toBe(body);
  });

  test.each([
    ['a count that is a text', '{"proxy_countries":{"US":"5"}}', ['proxy_countries.US']],
    ['a limit that is none', '{"bandwidth_limit":"much"}', ['bandwidth_limit']],
    ['a flag that is a number', '{"is_high_concurrency":1,"term":2}', ['is_high_concurrency', 'term']],
  ])('with %s is refused', async (_, body, fields) => {
    expect(await badFields('purchasePlan', body)).toEqual(fields);
  });
});

describe('starting ID verification', () => {
  test.each([
    ['no body', undefined],
    ['an empty object', '{}'],
  ])('takes %s', async (_, body) => {
    expect(await accepted('startIdVerification', body)).toBe(body ?? '');
  });

  test('takes an empty body, of whatever type', async () => {
    const { path } = exampleInput('startIdVerification');
    stage.upstream.on(`POST ${path}`, json(200, exampleBody('startIdVerification')));
    for (const type of ['application/json', 'text/plain']) {
      const headers = [
        ['Authorization', `Token ${secret()}`],
        ['Content-Type', type],
      ] as const;
      expect((await stage.raw(requestText({ method: 'POST', target: path, headers, body: '' }))).status).toBe(200);
    }
    expect(stage.upstream.calls.map(({ headers, body }) => [headers['content-type'], body])).toEqual([
      [undefined, ''],
      [undefined, ''],
    ]);
  });

  test.each([
    ['{"a":1}', 'a'],
    ['{"__proto__":1}', '__proto__'],
  ])('refuses %s', async (body, field) => {
    expect(await badFields('startIdVerification', body)).toEqual([field]);
  });
});

describe('a new API key', () => {
  test.each(['{}', '{"label":""}', '{"label":"é\\ud83d\\ude00","x":1}'])('takes %s', async (body) => {
    expect(await accepted('createApiKey', body)).toBe(body);
  });

  test('needs a label that is a text', async () => {
    expect(await badFields('createApiKey', '{"label":1}')).toEqual(['label']);
  });
});

const required: readonly OperationId[] = [
  'createApiKey',
  'purchasePlan',
  'updateReferralConfig',
  'registerSocial',
  'loginSocial',
];

test.each(required)('%s needs a body', async (id) => {
  const { method, path } = exampleInput(id);
  const headers = [['Authorization', `Token ${secret()}`]] as const;
  for (const given of [undefined, '']) {
    const text = requestText({ method, target: path, headers, ...(given !== undefined && { body: given }) });
    expectProblem(await stage.raw(text), { status: 400, code: 'malformed_json', instance: path });
  }
  expect(stage.upstream.calls).toEqual([]);
});

const bodiless = allOperations.filter((row) => row.method !== 'GET' && !('body' in row)).map(({ id }) => id);

test.each(bodiless)('%s has no body, and what comes as one stays here', async (id) => {
  const { method, path } = exampleInput(id);
  const answer = exampleBody(id);
  const headers = { 'content-type': 'text/plain' };
  stage.upstream.on(`${method} ${path}`, json(answer === '' ? 204 : 200, answer));
  expect((await stage.call({ method, path, token: secret(), headers, body: 'not json' })).status).toBeLessThan(300);
  const [sent] = stage.upstream.calls;
  expect(sent).toMatchObject({ body: '' });
  expect(sent?.headers).not.toHaveProperty('content-type');
});
