import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations } from '../support/account-api.ts';
import { expectBare, expectProblem } from '../http/problem.ts';
import { exampleBody } from '../support/examples.ts';
import { openSocket, type RawSocket, requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

let socket: RawSocket;
beforeEach(async () => {
  socket = await openSocket(stage.gateway.port);
});
afterEach(() => socket.destroy());

/** One request after the other on one connection, which none of them may spoil. */
const ask = async (target: string, method = 'GET') => {
  await socket.write(requestText({ method, target, headers: [['Authorization', `Token ${secret()}`]] }));
  return socket.readResponse();
};

/** 404 from the gateway itself, with the path in it as it was written, and not a byte upstream. */
const expectUnknown = async (target: string, method = 'GET') => {
  const instance = /^[^?#]*/.exec(target)?.[0] ?? '';
  expectProblem(await ask(target, method), { status: 404, code: 'unknown_endpoint', instance });
  expect(stage.upstream.calls).toEqual([]);
};

/** No `<ID>` of any kind. */
const BAD_IDS: readonly string[] = [
  String.raw`%31 1%00 %00 1%2f 1%2F2 %2f ..%2f1 %2e %2e%2e %2E%2E%2F . .. ... 1.0 1. a.b % %zz 1% %u0031 %c0%ae`,
  String.raw`1;a=b 1; ;1 1,2 1%20 %201 1%0a 1%0d%0aX-Subuser:%207 %09 1%3Fplan_id=2 1%23 1%5c 1\ \ +1 1+1 {id} :id * (1)`,
  String.raw`[1] 1' 1" 1|2 1@2 1=1 1&2 1:2 ~ ! $ %D9%A1 %EF%BC%91`,
].flatMap((line) => line.split(' '));

const BAD_DIGITS = [...BAD_IDS, '12345678901234567890', 'abc', '1a', '-1', '1_000', '0x1', '1e3', 'NaN', 'null'];

const BAD_SLUGS = [...BAD_IDS, 'a'.repeat(65)];

const templates = [...new Set(allOperations.map(({ path }) => path))].map(
  (path) => allOperations.find((row) => row.path === path) as Operation,
);
const withId = templates.filter(({ idForm }) => idForm);

describe.each(withId.map((row) => [row.path, row] as const))('%s', (path, { idForm, method }) => {
  test('has nothing at an id that is none', async () => {
    for (const bad of idForm === 'slug' ? BAD_SLUGS : BAD_DIGITS)
      await expectUnknown(path.replace('{id}', bad), method);
  });

  test('has nothing without an id', async () => {
    await expectUnknown(path.replace('{id}', ''), method);
  });
});

describe.each(templates.map((row) => [row.path, row] as const))('%s', (template, { method }) => {
  const path = template.replace('{id}', '1');

  const spoilt = [
    `${path}/`, // a slash too many at the end
    `/${path}`, // a slash too many at the beginning
    path.replace('/v2/', '/v2//'), // a slash too many in between
    path.replace('/v2/', '/v2/./'), // dot segments
    path.replace('/v2/', '/v2/x/../'), // dot segments that cancel out
    path.replace('/v2/', '/v2/x/%2e%2e/'), // encoded dot segments
    `${path}x/..`, // dot segments at the end
    path.replace('/api', '/%61pi'), // an encoded letter
    path.replace('/v2/', '/v2%2f'), // an encoded slash
    `${path.slice(0, -1)}%2f`, // an encoded slash at the end
    path.replace('/v2/', '/v2\\'), // a backslash
    path.replace('/api/v2/', '/API/v2/'), // another case
    path.replace('/v2/', '/v3/'), // another version
    `${path.slice(0, -1)};x=1/`, // a parameter of a segment
    `${path}x`, // garbage behind it
    `${path}%00`, // an encoded null behind it
    `${path}%20`, // a space behind it
    `${path}%0d%0a`, // a line break behind it
    `${path.slice(0, -1)}.json`, // an extension
    `${path}#x`, // a fragment
    `/x${path}`, // a prefix
  ];

  test('has nothing at a path that is not quite its own', async () => {
    for (const target of spoilt) await expectUnknown(target, method);
  });
});

test.each([
  '/api/v2/subuser/١/',
  '/api/v2/subuser/1/é',
  '/api/v2/subuser/1/\x7f',
  '/api/v2/subuser/\x01/',
  '/api/v2/subscription/?q=é',
])('bytes that no URL has are no HTTP: %j', async (target) => {
  expectBare(await stage.raw(requestText({ target })), 400);
  expect(stage.upstream.calls).toEqual([]);
});

test.each(['/api', '/api/', '/api/v2', '/api/v2/', '/api/v2/proxy/', '/api/v2/payment/', '/favicon.ico', '//', '/..'])(
  'there is nothing at %s',
  async (target) => {
    await expectUnknown(target);
  },
);

describe('an id that is one', () => {
  test.each(['0', '1', '007', '9'.repeat(19)])('of digits: %s', async (id) => {
    stage.upstream.once(`GET /api/v2/payment/method/${id}/`, json(200, exampleBody('getPaymentMethod')));
    expect((await ask(`/api/v2/payment/method/${id}`)).status).toBe(200);
  });

  test.each(['91', 'auth_91-a', '-', '_', 'A', 'a'.repeat(64), 'refresh'])('of an IP authorization: %s', async (id) => {
    const path = `/api/v2/proxy/ipauthorization/${id}/`;
    stage.upstream.once(`GET ${path}`, json(200, exampleBody('getIpAuthorization')));
    stage.upstream.once(`DELETE ${path}`, json(204));
    expect((await ask(path)).status).toBe(200);
    expect((await ask(path, 'DELETE')).status).toBe(204);
    expect(stage.upstream.calls.map(({ target }) => target)).toEqual([path, path]);
  });
});

test('an empty query is none', async () => {
  stage.upstream.once('GET /api/v2/subscription/', json(200, exampleBody('getSubscription')));
  expect((await ask('/api/v2/subscription?')).status).toBe(200);
  expect(stage.upstream.calls.map(({ target }) => target)).toEqual(['/api/v2/subscription/']);
});

test('what a query looks like is no matter of the path', async () => {
  const query = 'x=/../..//%2e%2e/%00&y=http://elsewhere.example/&z=;a\\b';
  stage.upstream.on('GET /api/v2/subscription/', json(200, exampleBody('getSubscription')));
  expect((await ask(`/api/v2/subscription/?${query}`)).status).toBe(200);
  expect(stage.upstream.calls.map(({ target }) => target)).toEqual([`/api/v2/subscription/?${query}`]);
});
