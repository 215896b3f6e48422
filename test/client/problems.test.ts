import { describe, expect, test } from 'vitest';
import { PorticoProblem } from '../../client/src/index.ts';
import { bytes, close, json, type Step } from '../support/scripted-upstream.ts';
import { httpResponse, reply } from '../support/steps.ts';
import { callOf } from '../support/marked.ts';
import {
  gistOf,
  openClient,
  openStandIn,
  passPauses,
  problem,
  problemBody,
  problemOf,
  SUBSCRIPTION,
} from './helpers.ts';

const WRITE = 'PATCH /api/v2/referral/config/';

describe('a problem of the gateway', () => {
  test('is thrown with all that it says', async () => {
    const { gateway, portico } = await openStandIn();
    const more = {
      retry_after: 90,
      retryable: true,
      section: 'subscription',
      errors: [{ code: 'too_low', message: 'Too low.', field: 'amount' }],
    };
    gateway.on(SUBSCRIPTION, problem(503, 'upstream_unavailable', more));
    const thrown = await problemOf(portico.getSubscription());
    expect(thrown).toBeInstanceOf(Error);
    expect(thrown).toMatchObject({
      name: 'PorticoProblem',
      message: 'A detail of upstream_unavailable.',
      code: 'upstream_unavailable',
      status: 503,
      title: 'A title',
      detail: 'A detail of upstream_unavailable.',
      retryable: true,
      retryAfter: 90,
      outcome: undefined,
      section: 'subscription',
      requestId: 'request-1',
      problem: problemBody(503, 'upstream_unavailable', more),
    });
    expect({ ...thrown.errors }).toEqual({ amount: [{ code: 'too_low', message: 'Too low.' }] });
  });

  test('of a write says that its outcome is unknown, as the gateway does', async () => {
    const { gateway, portico } = await openStandIn();
    gateway.on(WRITE, problem(504, 'upstream_timeout', { outcome: 'unknown' }));
    expect(gistOf(await problemOf(portico.updateReferralConfig({})))).toBe('upstream_timeout 504 unknown');
  });

  test('is that of the real gateway, with the request id of its logs', async () => {
    const { gateway, upstream, portico } = await openClient();
    upstream.on(callOf('updateReferralConfig'), json(400, { mode: ['Not this one.'], non_field_errors: ['Nor so.'] }));
    const thrown = await problemOf(portico.updateReferralConfig({ mode: 'credits' }));
    expect(thrown).toMatchObject({ status: 400, retryable: false, outcome: undefined });
    expect({ ...thrown.errors }).toMatchObject({
      mode: [{ message: 'Not this one.' }],
      '': [{ message: 'Nor so.' }],
    });
    expect(gateway.lines.map((line) => line['request_id'])).toContain(thrown.requestId);
  });
});

const errorsOf = (errors: PorticoProblem['problem']['errors']) =>
  new PorticoProblem(problemBody(400, 'validation_error', { errors })).errors;
const error = (field: string | null, code = 'wrong') => ({ code, message: `It is ${code}.`, field });

describe('errors by field', () => {
  test('are together under their field, in their order, those of the whole under the empty name', () => {
    const errors = errorsOf([error('a', 'one'), error(null), error('b.0.c'), error('a', 'two')]);
    expect(Object.keys(errors)).toEqual(['a', '', 'b.0.c']);
    expect(errors['a']?.map(({ code }) => code)).toEqual(['one', 'two']);
    expect(errors['']).toEqual([{ code: 'wrong', message: 'It is wrong.' }]);
    expect(errors['other']).toBeUndefined();
  });

  test('may be of a field with any name', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const errors = errorsOf(names.map((name) => error(name)));
    expect(Object.keys(errors)).toEqual(names);
    for (const name of names) expect(errors[name]).toEqual([{ code: 'wrong', message: 'It is wrong.' }]);
    expect(errorsOf([])['constructor']).toBeUndefined();
    expect(({} as Record<string, unknown>)['0']).toBeUndefined();
  });
});

/** Alike, but of something in between. */
const ALIKE: readonly (readonly [string, Step])[] = [
  ['is plain JSON', json(504, problemBody(504, 'a_code'))],
  ['has no content type', json(504, problemBody(504, 'a_code'), { 'content-type': '' })],
  ['has another content type', alike({}, 'application/problem+json-seq')],
  ['has another status than the answer', alike({ status: 502 })],
  ['has no type', alike({ type: undefined })],
  ['has the type of another code', alike({ type: '/problems/another_code' })],
  ['has a type that is no path of ours', alike({ type: 'https://proxy.example/errors/a_code' })],
  ['has no code', alike({ code: undefined })],
  ['does not say whether it is retryable', alike({ retryable: undefined })],
  ['says so in a text', alike({ retryable: 'true' })],
  ['has no errors', alike({ errors: undefined })],
];

function alike(more: Readonly<Record<string, unknown>>, type = 'application/problem+json'): Step {
  return json(504, { ...problemBody(504, 'a_code', { retryable: true }), ...more }, { 'content-type': type });
}

describe.for(ALIKE)('what looks like a problem of the gateway, but %s,', ([, answer]) => {
  test('is of unknown outcome for a write, which is not sent again', async () => {
    const lengths = passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(WRITE, answer);
    expect(gistOf(await problemOf(portico.updateReferralConfig({})))).toBe('unexpected_answer 504 unknown');
    expect([gateway.calls.length, lengths]).toEqual([1, []]);
  });
});

test.for([
  'application/problem+json',
  'application/problem+json; charset=utf-8',
  'application/problem+json;charset=utf-8',
  'Application/Problem+JSON',
])('a problem of the gateway has the content type %s', async (type) => {
  const { gateway, portico } = await openStandIn();
  const own = problemBody(404, 'not_found', { type: 'https://app.example/mounted/problems/not_found' });
  gateway.on(SUBSCRIPTION, json(404, own, { 'content-type': type }));
  expect(gistOf(await problemOf(portico.getSubscription()))).toBe('not_found 404');
});

const HTML = '<!doctype html><title>502</title>';
const html = (status: number): Step => json(status, HTML, { 'content-type': 'text/html' });
const cut = (status: number): Step => {
  const whole = httpResponse(status, { something: 'long enough' });
  return reply(bytes(whole.subarray(0, -5)), close());
};

/** An answer, and what a read and a write throw for it. */
const STRANGE: readonly (readonly [string, Step, read: string, write: string])[] = [
  ['HTML with status 200', html(200), 'unexpected_answer 200', 'unexpected_answer 200 unknown'],
  ['HTML with status 404', html(404), 'unexpected_answer 404', 'unexpected_answer 404 unknown'],
  ['HTML with status 429', html(429), 'unexpected_answer 429', 'unexpected_answer 429 unknown'],
  ['HTML with status 502', html(502), 'unexpected_answer 502', 'unexpected_answer 502 unknown'],
  ['nothing with status 403', json(403, ''), 'unexpected_answer 403', 'unexpected_answer 403 unknown'],
  ['nothing with status 500', json(500, ''), 'unexpected_answer 500', 'unexpected_answer 500 unknown'],
  ['304 that nobody has asked for', json(304, ''), 'unexpected_answer 304', 'unexpected_answer 304 unknown'],
  ['nothing with status 200', json(200, ''), 'unexpected_answer 200', 'unexpected_answer 200 unknown'],
  ['half of its JSON with status 200', json(200, '{"a":'), 'unexpected_answer 200', 'unexpected_answer 200 unknown'],
  ['half of its JSON with status 503', json(503, '{"a":'), 'unexpected_answer 503', 'unexpected_answer 503 unknown'],
  ['JSON of somebody else', json(500, { error: 'no' }), 'unexpected_answer 500', 'unexpected_answer 500 unknown'],
  [
    'a code of somebody else',
    json(400, { code: 7, errors: 'no' }),
    'unexpected_answer 400',
    'unexpected_answer 400 unknown',
  ],
  ['JSON null', json(500, 'null'), 'unexpected_answer 500', 'unexpected_answer 500 unknown'],
  ['a good answer that breaks off', cut(200), 'connection_failed 0', 'connection_failed 0 unknown'],
  ['a failure that breaks off', cut(503), 'connection_failed 0', 'connection_failed 0 unknown'],
  [
    'bytes that are no HTTP',
    reply(bytes('hello\r\n\r\n'), close()),
    'connection_failed 0',
    'connection_failed 0 unknown',
  ],
  ['a connection that is closed', close(), 'connection_failed 0', 'connection_failed 0 unknown'],
];

describe.for(STRANGE)('%s', ([, answer, read, write]) => {
  test(`is thrown as ${read} by a read`, async () => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(SUBSCRIPTION, answer);
    const thrown = await problemOf(portico.getSubscription());
    expect(gistOf(thrown)).toBe(read);
    expect(thrown).toMatchObject({ requestId: '', section: undefined, problem: { instance: '/api/v2/subscription/' } });
    expect(thrown.detail).toContain(thrown.title);
    expect(Object.keys(thrown.errors)).toEqual([]);
  });

  test(`is thrown as ${write} by a write, which is not sent again`, async () => {
    passPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(WRITE, answer);
    const thrown = await problemOf(portico.updateReferralConfig({ mode: 'credits' }));
    expect(gistOf(thrown)).toBe(write);
    expect(thrown.retryable).toBe(false);
    expect(gateway.calls).toHaveLength(1);
  });
});

test('where nobody listens it is connection_failed, and the cause says more', async () => {
  passPauses();
  const { gateway, portico } = await openStandIn();
  await gateway.close();
  const read = await problemOf(portico.getSubscription());
  expect(gistOf(read)).toBe('connection_failed 0');
  expect([read.retryable, read.cause]).toEqual([true, expect.any(TypeError)]);
  expect(gistOf(await problemOf(portico.updateReferralConfig({})))).toBe('connection_failed 0 unknown');
});

test('what stands in a strange answer is the cause, and no part of what is shown', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(SUBSCRIPTION, html(404));
  const thrown = await problemOf(portico.getSubscription());
  expect(thrown.cause).toBe(HTML);
  expect(JSON.stringify(thrown.problem)).not.toContain('doctype');
});

test('Retry-After of a strange answer is heard, where it is a number', async () => {
  const { gateway, portico } = await openStandIn();
  const answers = ['90', 'Wed, 21 Oct 2026 07:28:00 GMT'].map((value) => json(404, HTML, { 'retry-after': value }));
  gateway.on(SUBSCRIPTION, ...answers);
  const seen = [await problemOf(portico.getSubscription()), await problemOf(portico.getSubscription())];
  expect(seen.map(({ retryAfter }) => retryAfter)).toEqual([90, undefined]);
});
