import { describe, expect, test } from 'vitest';
import { expectProblem, type Problem } from '../http/problem.ts';
import { START_MS } from '../support/clock.ts';
import { json, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

const dateIn = (seconds: number) => new Date(START_MS + seconds * 1000).toUTCString();

const PATH = '/api/v2/subscription/';

interface Expected {
  readonly status: number;
  readonly code: string;
}

/** What becomes of this answer of the upstream, to a read and to a write alike. */
const refusal = async (step: Step, expected: Expected, token = secret()): Promise<Problem> => {
  stage.upstream.on(`GET ${PATH}`, step);
  stage.upstream.on('DELETE /api/v2/payment/method/', step);
  const write = await stage.call({ method: 'DELETE', path: '/api/v2/payment/method/', token: secret() });
  expect(expectProblem(write, expected).outcome).toBeUndefined();
  return expectProblem(await stage.call({ path: PATH, token }), { ...expected, instance: PATH });
};

/** `[code, message, field]`, as `errors` has them. */
type Item = readonly [code: string, message: string, field: string | null];

interface Shape extends Expected {
  readonly body: unknown;
  readonly items: readonly Item[];
}

const of = (status: number, code: string, body: unknown, items: readonly Item[]): Shape => ({
  status,
  code,
  body,
  items,
});

const SHAPES: Readonly<Record<string, Shape>> = {
  'an array of errors': of(
    400,
    'paid_plan_active',
    [{ message: 'Cancel auto-renewal instead.', code: 'paid_plan_active' }],
    [['paid_plan_active', 'Cancel auto-renewal instead.', null]],
  ),
  'an array of two errors': of(
    400,
    'one',
    [
      { message: 'First.', code: 'one' },
      { message: 'Second.', code: 'two' },
    ],
    [
      ['one', 'First.', null],
      ['two', 'Second.', null],
    ],
  ),
  'a detail and a code': of(403, '2fa_needed', { detail: 'Enter the code.', code: '2fa_needed' }, [
    ['2fa_needed', 'Enter the code.', null],
  ]),
  'a detail, a code and more': of(
    403,
    'account_suspended',
    { detail: 'Suspended.', code: 'account_suspended', status_code: 403, extra: { a: ['b'] } },
    [
      ['account_suspended', 'Suspended.', null],
      ['invalid', 'b', 'extra.a'],
    ],
  ),
  'a code and the errors of a field': of(400, 'invalid', { code: 'invalid', label: ['Required.'] }, [
    ['invalid', 'invalid', null],
    ['invalid', 'Required.', 'label'],
  ]),
  'a code and no words': of(403, '2fa_needed', { detail: '', code: '2fa_needed' }, [
    ['2fa_needed', '2fa_needed', null],
  ]),
  'a field that is called detail, and a code': of(400, 'invalid', { detail: ['Bad.'], code: 'invalid' }, [
    ['invalid', 'invalid', null],
    ['invalid', 'Bad.', 'detail'],
  ]),
  'an error in an envelope': of(402, 'card_declined', { error: { code: 'card_declined', message: 'No.' } }, [
    ['card_declined', 'No.', null],
  ]),
  'a detail alone': of(404, 'not_found', { detail: 'Not found.' }, [['invalid', 'Not found.', null]]),
  'a code alone': of(403, 'api_key_not_allowed', { code: 'api_key_not_allowed' }, [
    ['api_key_not_allowed', 'api_key_not_allowed', null],
  ]),
  'errors of a field': of(400, 'validation_failed', { mode: [{ message: 'Wrong.', code: 'invalid_choice' }] }, [
    ['invalid_choice', 'Wrong.', 'mode'],
  ]),
  'texts of fields': of(400, 'validation_failed', { mode: ['Wrong.', 'Very.'], label: ['Missing.'] }, [
    ['invalid', 'Wrong.', 'mode'],
    ['invalid', 'Very.', 'mode'],
    ['invalid', 'Missing.', 'label'],
  ]),
  'a text of a field without a list': of(400, 'validation_failed', { mode: 'Wrong.' }, [['invalid', 'Wrong.', 'mode']]),
  'a field called code': of(400, 'validation_failed', { code: ['This code is used up.'] }, [
    ['invalid', 'This code is used up.', 'code'],
  ]),
  'fields called code and detail': of(
    400,
    'validation_failed',
    { code: [{ message: 'Used up.', code: 'used' }], detail: ['Missing.'], message: ['Too long.'] },
    [
      ['used', 'Used up.', 'code'],
      ['invalid', 'Missing.', 'detail'],
      ['invalid', 'Too long.', 'message'],
    ],
  ),
  'errors of no field': of(400, 'bad_request', { non_field_errors: ['Not now.'] }, [['invalid', 'Not now.', null]]),
  'coded errors of no field': of(
    400,
    'too_early',
    { non_field_errors: [{ message: 'Not now.', code: 'too_early' }], mode: ['Wrong.'] },
    [
      ['too_early', 'Not now.', null],
      ['invalid', 'Wrong.', 'mode'],
    ],
  ),
  'nested fields': of(
    400,
    'validation_failed',
    {
      plan: { proxy_countries: { US: ['Too many.'] }, non_field_errors: ['No.'] },
      a: { b: { message: 'c', code: 'd' } },
    },
    [
      ['invalid', 'Too many.', 'plan.proxy_countries.US'],
      ['invalid', 'No.', 'plan'],
      ['d', 'c', 'a.b'],
    ],
  ),
  'a bare string': of(409, 'conflict', '"Already done."', [['invalid', 'Already done.', null]]),
  'an array of strings': of(
    400,
    'bad_request',
    ['One.', 'Two.'],
    [
      ['invalid', 'One.', null],
      ['invalid', 'Two.', null],
    ],
  ),
  'a sentence for the whole and the errors of a field': of(
    400,
    'validation_failed',
    { detail: 'Look again.', mode: ['Wrong.'] },
    [
      ['invalid', 'Look again.', null],
      ['invalid', 'Wrong.', 'mode'],
    ],
  ),
  'errors of a field with another status': of(422, 'unprocessable_content', { mode: ['Wrong.'] }, [
    ['invalid', 'Wrong.', 'mode'],
  ]),
  'a sentence of a field called code': of(400, 'validation_failed', { code: 'No such code.' }, [
    ['invalid', 'No such code.', 'code'],
  ]),
  'codes that are numbers': of(400, 'bad_request', [{ message: 'No.', code: 17 }], [['invalid', 'No.', null]]),
  'a code that is a sentence': of(422, 'unprocessable_content', { detail: 'No.', code: 'what is <this>?' }, [
    ['invalid', 'No.', null],
  ]),
  'an empty object': of(400, 'bad_request', {}, []),
  'an empty array': of(404, 'not_found', [], []),
  null: of(410, 'gone', 'null', []),
  'a number': of(400, 'bad_request', '17', []),
  'nothing but blanks': of(402, 'payment_required', { detail: '  ' }, []),
  'a status that has no name': of(419, 'status_419', { detail: 'Short.' }, [['invalid', 'Short.', null]]),
  'markup in a message': of(
    400,
    'x',
    [
      { message: '<b onclick=a()>Hi</b>', code: 'x' },
      { message: 'Plain.', code: 'x' },
    ],
    [
      ['x', 'x', null],
      ['x', 'Plain.', null],
    ],
  ),
};

describe('an error body of', () => {
  test.each(Object.entries(SHAPES))('%s', async (_, { body, status, code, items }) => {
    const problem = await refusal(json(status, body), { status, code });
    expect(problem.errors).toEqual(items.map(([itemCode, message, field]) => ({ code: itemCode, message, field })));
    const sentence = items.find(([own, message, field]) => field === null && message !== own);
    if (sentence) expect(problem.detail).toBe(sentence[1]);
    expect(problem.detail).not.toBe(problem.code);
    expect(problem.retryable).toBe(false);
  });
});

test('a problem of fields says that the upstream refused them', async () => {
  const { detail } = await refusal(json(400, { mode: ['Wrong.'] }), { status: 400, code: 'validation_failed' });
  expect(detail).toBe('The upstream refused parts of the request; `errors` names each.');
});

/** Words that stand where codes do, and may be secrets. */
const ODD_CODES = [
  'pi_3Nx_secret_Zq81',
  'pi_3nx_secret_zq81',
  '4242424242424242',
  '4242_4242_4242_4242',
  '4242-4242',
  'someone@wallet.example',
  'upstream.example',
  'sk_live_abcdefghijklmnopqrstuvwxyz',
  'da39a3ee5e6b4b0d3255bfef95601890afd80709',
  '0b9c7f2e-1d1a-4c0e-9d3b-6a2f1c7e8d90',
  'Smith',
  'a__b',
  `${'code_'.repeat(13)}x`,
];

describe.each(ODD_CODES)('%s, which is no code,', (word) => {
  const BODIES: readonly (readonly [string, unknown])[] = [
    ['of an array', [{ message: 'No.', code: word }]],
    ['beside a sentence', { detail: 'No.', code: word }],
    ['alone', { code: word }],
    ['of a field', { mode: [{ message: 'No.', code: word }] }],
    ['alone in a field', { mode: [{ code: word }] }],
  ];

  test.each(BODIES)('%s is in no answer and no log', async (_, body) => {
    stage.upstream.on(`GET ${PATH}`, json(402, body));
    const answer = await stage.call({ path: PATH, token: secret() });
    const { errors } = expectProblem(answer, { status: 402, code: 'payment_required' });
    expect(errors.map(({ code }) => code).filter((code) => code !== 'invalid')).toEqual([]);
    expect(answer.text + JSON.stringify(stage.gateway.lines)).not.toContain(word);
    expect((await stage.call({ path: `/problems/${encodeURIComponent(word)}` })).status).toBe(404);
  });
});

const OWN_CODES = ['2fa_needed', '3ds', 'card_declined', 'parsing_error', 'not-enough-credit', 'x', 'throttled'];

test.each(OWN_CODES)('%s is a code: sent on, logged and described', async (code) => {
  const { type } = await refusal(json(402, { detail: 'No.', code }), { status: 402, code });
  const described = await stage.call({ path: type });
  expect(described).toMatchObject({ status: 200, json: { type, code, title: expect.stringMatching(/^[A-Z0-9]/) } });
  const logged = stage.gateway.lines.filter(({ msg }) => msg === 'request').map((line) => line['code']);
  expect(logged.slice(0, 2)).toEqual([code, code]);
});

type Wait = readonly [how: string, header: () => string | undefined, bounds: readonly [least: number, most: number]];

const WAITS: readonly Wait[] = [
  ['seconds', () => '7', [7, 7]],
  ['no header', () => undefined, [1, 300]],
  ['an empty header', () => '', [1, 300]],
  ['zero', () => '0', [1, 1]],
  ['a day', () => '86400', [300, 300]],
  ['a number without end', () => '9'.repeat(400), [300, 300]],
  ['less than nothing', () => '-5', [1, 300]],
  ['a fraction', () => '1.5', [2, 2]],
  ['garbage', () => 'soon', [1, 300]],
  ['a date', () => dateIn(60), [50, 61]],
  ['a date gone by', () => dateIn(-60), [1, 1]],
  ['a date far away', () => dateIn(86_400), [300, 300]],
  ['a date that is none', () => 'Tue, 99 Foo 2026 25:61:00 GMT', [1, 300]],
];

describe('429', () => {
  test.each(WAITS)('with %s says when to come back', async (_, value, [least, most]) => {
    const header = value();
    const headers: Readonly<Record<string, string>> = header === undefined ? {} : { 'Retry-After': header };
    const step = json(429, { detail: 'Slow down.', code: 'throttled' }, headers);
    const problem = await refusal(step, { status: 429, code: 'rate_limited' });
    expect(problem.retry_after).toBeGreaterThanOrEqual(least);
    expect(problem.retry_after).toBeLessThanOrEqual(most);
    expect(Number.isInteger(problem.retry_after)).toBe(true);
    expect(problem.retryable).toBe(true);
  });
});
