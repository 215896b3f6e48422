import { describe, expect, test } from 'vitest';
import { ERROR_CODES, ERRORS } from '../../src/core/errors.ts';
import { exampleInput } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';
import { expectProblem } from './problem.ts';

const stage = useWorld();

const READ = '/api/v2/subscription/';

const wordsOf = async (body: unknown, path = exampleInput('registerSocial').path) => {
  const headers = { 'content-type': 'application/json' };
  const answer = await stage.call({ method: 'POST', path, body: JSON.stringify(body), headers, token: secret() });
  const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed' });
  return errors.map(({ field, message }) => `${field}: ${message}`);
};

describe('what is wrong with a body is said in words, not in those of a validator', () => {
  test('of a call of the upstream', async () => {
    expect(await wordsOf({ provider: '', code: 5, tos_accepted: false })).toEqual([
      'provider: must not be empty',
      'code: expected a text',
      'redirect_uri: is missing',
      'tos_accepted: expected true',
    ]);
    expect(await wordsOf([])).toEqual(['null: expected an object']);
  });

  test('of a batch', async () => {
    const batch = '/bff/v1/batch';
    expect(await wordsOf({}, batch)).toEqual(['requests: is missing']);
    expect(await wordsOf({ requests: 'a' }, batch)).toEqual(['requests: expected a list']);
    expect(await wordsOf({ requests: [] }, batch)).toEqual(['requests: must not be empty']);
    const many = Array.from({ length: 21 }, (_, index) => ({ id: `${index}`, path: READ }));
    expect(await wordsOf({ requests: many }, batch)).toEqual(['requests: expected at most 20 items']);
    expect(await wordsOf({ requests: [{ id: 'x'.repeat(65), path: READ }] }, batch)).toEqual([
      'requests.0.id: expected at most 64 characters',
    ]);
  });
});

test('the same code says what happened: no key, one that cannot be read, one that the upstream does not accept', async () => {
  const details = async (headers: Record<string, string>) =>
    expectProblem(await stage.call({ path: READ, headers }), { status: 401, code: 'unauthenticated' }).detail;
  stage.upstream.on(`GET ${READ}`, json(401, {}));
  const said = [
    await details({}),
    await details({ authorization: 'Basic abc' }),
    await details({ authorization: `Token ${secret()}` }),
  ];
  expect(said[0]).toMatch(/has no `Authorization` header/);
  expect(said[1]).toMatch(/cannot be read/);
  expect(said[2]).toMatch(/upstream does not accept this key/);
});

test('every description is whole sentences without a semicolon', () => {
  for (const code of ERROR_CODES) expect(ERRORS[code].description).toMatch(/^[A-Z][^;]*\.$/);
});
