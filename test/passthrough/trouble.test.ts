import { describe, expect, test } from 'vitest';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { requestText } from '../support/raw-client.ts';
import { json, reset } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

const HTML = '<html><body>Service at upstream.example is down</body></html>';

/** What the upstream does, and what becomes of it. */
const FAILURES = [
  ['500', json(500, { detail: 'stack' }), [502, 'upstream_bad_response', undefined]],
  ['502 with HTML', json(502, HTML, { 'content-type': 'text/html' }), [502, 'upstream_bad_response', undefined]],
  ['503', json(503, HTML), [503, 'upstream_unavailable', expect.any(Number)]],
  ['503 with Retry-After', json(503, '', { 'Retry-After': '7' }), [503, 'upstream_unavailable', 7]],
  ['504', json(504, ''), [504, 'upstream_timeout', undefined]],
  ['599', json(599, ''), [502, 'upstream_bad_response', undefined]],
  ['a reset', reset(), [502, 'upstream_unreachable', undefined]],
] as const;

describe.each(allOperations.map((operation) => [operation.id, operation] as const))('%s', (id, row) => {
  const operation: Operation = row;
  const { method, path, body } = exampleInput(id);
  const request = (token?: string) => ({
    method,
    path,
    ...(token !== undefined && { token }),
    ...(body !== undefined && { body }),
  });

  test.each(FAILURES)('answers %s as documented', async (_, step, [status, code, retryAfter]) => {
    stage.upstream.on(`${method} ${path}`, step);
    const problem = expectProblem(await stage.call(request(secret())), { status, code, instance: path });
    // What may have happened is not to be tried again.
    expect([problem.retryable, problem.outcome]).toEqual(method === 'GET' ? [true, undefined] : [false, 'unknown']);
    expect(problem.retry_after).toEqual(method === 'GET' ? retryAfter : undefined);
    if (method !== 'GET') expect(problem.detail).toContain('may have happened');
    if (method !== 'GET') expect(stage.upstream.calls).toHaveLength(1);
  });

  test('says that nothing happened where no connection came about', async () => {
    await stage.upstream.close();
    const answer = await stage.call(request(secret()));
    expect(expectProblem(answer, { status: 502, code: 'upstream_unreachable' }).outcome).toBeUndefined();
  });

  test('takes an upstream 401 as its own', async () => {
    stage.upstream.on(`${method} ${path}`, json(401, { detail: 'Invalid token.', code: 'bad_token' }));
    const answer = await stage.call(request(secret()));
    const { detail, outcome } = expectProblem(answer, { status: 401, code: 'unauthenticated', instance: path });
    expect({ detail, outcome }).toEqual({ detail: 'Invalid token.', outcome: undefined });
    expect(answer.headers['www-authenticate']).toBe('Token');
    expect(stage.upstream.calls).toHaveLength(1);
  });

  if (operation.credential === 'none') {
    test('is called without a credential', async () => {
      stage.upstream.on(`${method} ${path}`, json(200, exampleBody(id)));
      expect(await stage.call(request())).toMatchObject({ status: 200 });
    });
  } else {
    test.each([undefined, 'Basic eDp5'])(
      'asks for a credential instead of %s, and the upstream nothing',
      async (bad) => {
        const headers = bad === undefined ? {} : { authorization: bad };
        const answer = await stage.call({ ...request(), headers });
        expectProblem(answer, { status: 401, code: 'unauthenticated', instance: path });
        expect(answer.headers['www-authenticate']).toBe('Token');
        expect(stage.upstream.calls).toEqual([]);
      },
    );
  }
});

describe('a credential', () => {
  const PATH = '/api/v2/subscription/';
  const withAuthorization = (...values: readonly string[]) =>
    stage.raw(requestText({ target: PATH, headers: values.map((value) => ['Authorization', value] as const) }));

  test.each([
    ['nothing', ''],
    ['only a scheme', 'Token'],
    ['a scheme and spaces', 'Token   '],
    ['no scheme', 'abcdef'],
    ['another scheme', 'Basic eDp5'],
    ['the scheme run together with the key', 'Tokenabc'],
    ['two keys', 'Token abc def'],
    ['two in one', 'Token abc, Token def'],
    ['a tab', 'Token a\tb'],
    ['4097 characters', `Token ${'k'.repeat(4097)}`],
    ['a letter that is not ASCII', 'Token é'],
  ])('of %s is refused', async (_, value) => {
    expectProblem(await withAuthorization(value), { status: 401, code: 'unauthenticated', instance: PATH });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('that comes in two headers is refused, equal ones too', async () => {
    for (const other of ['Token abc', 'Token def', 'Basic eDp5']) {
      expectProblem(await withAuthorization('Token abc', other), { status: 401, code: 'unauthenticated' });
    }
    expect(stage.upstream.calls).toEqual([]);
  });

  test.each([
    ['one character', 'a'],
    ['4096 characters', secret().padEnd(4096, 'k')],
    ['every visible character', Array.from({ length: 94 }, (__, at) => String.fromCharCode(0x21 + at)).join('')],
  ])('of %s is sent on as it is', async (_, key) => {
    stage.upstream.on(`GET ${PATH}`, json(200, exampleBody('getSubscription')));
    for (const scheme of ['Token', 'token', 'Bearer', 'BEARER  ']) {
      expect((await withAuthorization(`${scheme} ${key}`)).status).toBe(200);
    }
    expect(stage.upstream.calls.map(({ headers }) => headers['authorization'])).toContain(`Token ${key}`);
  });

  test('is never asked for on the way to an answer about the path', async () => {
    expectProblem(await stage.call({ path: '/api/v2/nothing/' }), { status: 404, code: 'unknown_endpoint' });
    expectProblem(await stage.call({ path: PATH, method: 'PUT' }), { status: 405, code: 'method_not_allowed' });
  });
});
