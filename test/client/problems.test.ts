import { describe, expect, test } from 'vitest';
import { PorticoProblem } from '../../client/src/index.ts';
import {
  type Answer,
  cut,
  gistOf,
  gistThrown,
  html,
  json,
  lost,
  openStandIn,
  problem,
  problemBody,
  problemOf,
  SUBSCRIPTION,
  WRITE,
} from './helpers.ts';

test('a problem of the gateway is thrown with all that it says', async () => {
  const { gateway, portico } = openStandIn({ retries: 0 });
  const errors = [{ code: 'too_low', message: 'Too low.', field: 'amount' }];
  const more = { retry_after: 90, retryable: true, section: 'subscription', errors };
  const body = problemBody(503, 'upstream_unavailable', more);
  gateway.on(SUBSCRIPTION, problem(503, 'upstream_unavailable', more));
  const thrown = await problemOf(portico.getSubscription());
  const { retry_after: retryAfter, request_id: requestId, errors: _, ...same } = body;
  expect(thrown).toMatchObject({ ...same, retryAfter, requestId, problem: body, outcome: undefined });
  expect([thrown.name, thrown.message]).toEqual(['PorticoProblem', body.detail]);
  expect(thrown).toBeInstanceOf(Error);
  expect({ ...thrown.errors }).toEqual({ amount: [{ code: 'too_low', message: 'Too low.' }] });
});

const errorsOf = (...fields: (string | null)[]) => {
  const errors = fields.map((field, index) => ({ code: `code_${index}`, message: 'Wrong.', field }));
  return new PorticoProblem(problemBody(400, 'validation_error', { errors })).errors;
};

test('errors are together under their field, in their order, those of the whole under the empty name', () => {
  const errors = errorsOf('a', null, 'b.0.c', 'a');
  expect(Object.keys(errors)).toEqual(['a', '', 'b.0.c']);
  expect(errors['a']?.map(({ code }) => code)).toEqual(['code_0', 'code_3']);
  expect(errors['']).toEqual([{ code: 'code_1', message: 'Wrong.' }]);
  const names = ['__proto__', 'constructor', 'toString'];
  expect(Object.keys(errorsOf(...names))).toEqual(names);
  expect(errorsOf()['constructor']).toBeUndefined();
});

const alike = (more: object, type = 'application/problem+json') =>
  json(504, { ...problemBody(504, 'a_code', { retryable: true }), ...more }, { 'content-type': type });

/** A foreign problem: alike, but of something in between. */
const FOREIGN: readonly (readonly [string, Answer])[] = [
  ['is plain JSON', alike({}, 'application/json')],
  ['has another content type', alike({}, 'application/problem+json-seq')],
  ['has no type', alike({ type: undefined })],
  ['has the type of another code', alike({ type: '/problems/another_code' })],
  ['has a type that is no path of ours', alike({ type: 'https://proxy.example/errors/a_code' })],
  ['does not say whether it is retryable', alike({ retryable: undefined })],
  ['says so in a text', alike({ retryable: 'true' })],
  ['has no errors', alike({ errors: undefined })],
];

test('a `retry_after` that is no time is none', async () => {
  for (const retry_after of ['soon', -1, {}] as unknown as number[]) {
    const { gateway, portico } = openStandIn();
    gateway.on('*', problem(503, 'a_code', { retry_after }));
    expect((await problemOf(portico.getSubscription())).retryAfter).toBeUndefined();
  }
});

test('a problem of the gateway may have a content type with parameters, and a type under any path', async () => {
  const type = 'https://app.example/mounted/problems/not_found';
  for (const media of ['application/problem+json; charset=utf-8', 'Application/Problem+JSON;charset=utf-8']) {
    const { gateway, portico } = openStandIn();
    gateway.on('*', json(404, problemBody(404, 'not_found', { type }), { 'content-type': media }));
    expect(await gistThrown(portico.getSubscription())).toBe('not_found 404');
  }
});

/** An answer, what it is thrown as, and how often a read is sent. A write is sent once, and its outcome is unknown. */
const STRANGE: readonly (readonly [string, Answer, string, number])[] = [
  ['HTML with status 200', html(200), 'unexpected_answer 200', 3],
  ['HTML with status 404', html(404), 'unexpected_answer 404', 1],
  ['HTML with status 429', html(429), 'unexpected_answer 429', 3],
  ['HTML with status 502', html(502), 'unexpected_answer 502', 3],
  ['nothing with status 200', json(200), 'unexpected_answer 200', 3],
  ['nothing with status 403', json(403), 'unexpected_answer 403', 1],
  ['304 that nobody has asked for', json(304), 'unexpected_answer 304', 3],
  ['307 to elsewhere', json(307, '', { location: 'http://other.test/' }), 'unexpected_answer 307', 3],
  ['half of its JSON with status 200', json(200, '{"a":'), 'unexpected_answer 200', 3],
  ['JSON of somebody else', json(500, { error: 'no' }), 'unexpected_answer 500', 3],
  ['a code of somebody else', json(400, { code: 7, errors: 'no' }), 'unexpected_answer 400', 1],
  ['a good answer that breaks off', cut(200), 'connection_failed 0', 3],
  ['a failure that breaks off', cut(503), 'connection_failed 0', 3],
  ['a connection that is closed', lost, 'connection_failed 0', 3],
];

const ALIKE = FOREIGN.map(([how, answer]) => [`a problem that ${how}`, answer, 'unexpected_answer 504', 3] as const);

describe.for([...STRANGE, ...ALIKE])('%s', ([, answer, gist, times]) => {
  test(`is thrown as ${gist} by a read, after ${times}`, async () => {
    const { gateway, portico } = openStandIn();
    gateway.on(SUBSCRIPTION, answer);
    const thrown = await problemOf(portico.getSubscription());
    expect([gistOf(thrown), gateway.calls.length]).toEqual([gist, times]);
    expect(thrown).toMatchObject({ requestId: '', problem: { instance: '/api/v2/subscription/' } });
    expect([thrown.detail, Object.keys(thrown.errors)]).toEqual([`${thrown.title}.`, []]);
  });

  test('is of unknown outcome for a write, which is not sent again', async () => {
    const { gateway, clock, portico } = openStandIn();
    gateway.on(WRITE, answer);
    const thrown = await problemOf(portico.updateReferralConfig({ mode: 'credits' }));
    expect([gistOf(thrown), thrown.retryable]).toEqual([`${gist} unknown`, false]);
    expect([gateway.calls.length, clock.lengths]).toEqual([1, []]);
  });
});

test('what stands in a strange answer is the cause, and no part of what is shown', async () => {
  const { gateway, portico } = openStandIn();
  gateway.on(SUBSCRIPTION, html(404));
  const thrown = await problemOf(portico.getSubscription());
  expect(thrown.cause).toBe('<!doctype html>');
  expect(JSON.stringify(thrown.problem)).not.toContain('doctype');
  gateway.on(WRITE, lost);
  expect((await problemOf(portico.updateReferralConfig({}))).cause).toBeInstanceOf(TypeError);
});

test('Retry-After of a strange answer is heard, where it is a number', async () => {
  const { gateway, portico } = openStandIn();
  const answers = ['90', 'Wed, 21 Oct 2026 07:28:00 GMT'].map((value) => json(404, '<html>', { 'retry-after': value }));
  gateway.on(SUBSCRIPTION, ...answers);
  const seen = [await problemOf(portico.getSubscription()), await problemOf(portico.getSubscription())];
  expect(seen.map(({ retryAfter }) => retryAfter)).toEqual([90, undefined]);
});
