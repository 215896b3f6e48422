import { describe, expect, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

/** One bad value of each documented parameter that has a type (`upstream-api.md`, endpoints 14 and 19 to 25). */
const BAD_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  page: ['0', '-1', 'two', '1.5', '', '%D9%A1', '1e3', '%zz'],
  page_size: ['0', '-1', 'all', '1.0', ''],
  plan_id: ['x', '1.5', '', '1%00', '1,2'],
  referral_channel: ['x', '1.5', 'null'],
  dismissed_at__isnull: ['maybe', '', '2'],
  timestamp__lte: ['yesterday', '', '2026-13-01', '09.06.2026', '1781000000'],
  timestamp__gte: ['yesterday', '2026-06-09T25', 'T'],
  starting_after: ['x', '2026'],
  ordering: ['x', '--id', 'id,created_at', ''],
};

/** The lists whose filters the document does not give take any `ordering`. */
const FREE_ORDERING = new Set<string>(['listPaymentMethods', 'listTransactions', 'listPendingPayments']);

const queried = allOperations.flatMap((row) => ('query' in row && row.query ? [{ id: row.id, query: row.query }] : []));

const typedOf = ({ id, query }: (typeof queried)[number]) =>
  Object.keys(query).filter((name) => name in BAD_PARAMETERS && !(name === 'ordering' && FREE_ORDERING.has(id)));

describe.each(queried)('$id', (row) => {
  const { method, path } = exampleInput(row.id);
  const status = method === 'GET' ? 200 : 204;
  const ask = (query: string) => stage.call({ method, path: `${path}?${query}`, token: secret() });

  test.each(typedOf(row))('refuses a %s that is none', async (name) => {
    for (const bad of BAD_PARAMETERS[name] ?? []) {
      const answer = await ask(`x=1&${name}=${bad}&y=2`);
      const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed', instance: path });
      expect(errors, bad).toEqual([{ code: expect.any(String), message: expect.any(String), field: name }]);
    }
    expect(stage.upstream.calls).toEqual([]);
  });

  test('names every bad parameter once', async () => {
    const names = typedOf(row);
    const [first] = names;
    const query = [...names, first].map((name) => `${name}=${BAD_PARAMETERS[name ?? '']?.[0]}`).join('&');
    const { errors } = expectProblem(await ask(query), { status: 400, code: 'validation_failed' });
    expect(errors.map(({ field }) => field)).toEqual(names);
    expect(stage.upstream.calls).toEqual([]);
  });

  test('names a parameter once that is bad two thousand times', async () => {
    const [first = ''] = typedOf(row);
    const { errors } = expectProblem(await ask(Array<string>(1_000).fill(first).join('&')), {
      status: 400,
      code: 'validation_failed',
    });
    expect(errors.map(({ field }) => field)).toEqual([first]);
  });

  test('passes on what the document does not list', async () => {
    const query = 'Page=x&page__gte=x&plan=x&__proto__=x&constructor=x&toString=x&a%5Bb%5D=%zz&=&&x==';
    stage.upstream.on(() => true, json(status, exampleBody(row.id)));
    expect((await ask(query)).status).toBe(status);
    expect(stage.upstream.calls.map(({ target }) => target)).toEqual([`${path}?${query}`]);
  });
});

test.each([
  ['a timestamp with its plus not encoded', '/api/v2/proxy/activity/?starting_after=2026-06-09T11:50:08.101337+02:00'],
  ['a date', '/api/v2/proxy/activity/?timestamp__lte=2026-06-09'],
  [
    'a timestamp of today',
    '/api/v2/proxy/activity/?timestamp__gte=2026-06-09T11%3A50%3A08Z&error_reason=*&bytes__gte=1.5k',
  ],
  ['True', '/api/v2/notification/?dismissed_at__isnull=True&ordering=-created_at&type=anything'],
  ['false', '/api/v2/notification/?dismissed_at__isnull=false&ordering=dismissed_at'],
  ['credits without a channel', '/api/v2/referral/credit/?referral_channel=&mode=&status='],
  ['any ordering of transactions', '/api/v2/payment/transaction/?ordering=-amount,id&status=completed'],
])('%s is a good parameter', async (_, path) => {
  stage.upstream.on(() => true, json(200, { count: 0, next: null, previous: null, results: [] }));
  expect((await stage.call({ path, token: secret() })).status).toBe(200);
  expect(stage.upstream.calls.map(({ target }) => target)).toEqual([path]);
});

const bodied = allOperations.filter((row) => 'body' in row);

describe.each(bodied.map(({ id }) => id))('%s', (id) => {
  const { method, path, body = '' } = exampleInput(id);
  const JSON_TYPE = { 'Content-Type': 'application/json' };

  const send = (sent: string | Uint8Array, headers: Readonly<Record<string, string>> = JSON_TYPE) =>
    stage.call({ method, path, token: secret(), body: sent, headers });

  test.each([
    ['words', 'mode=credits'],
    ['a cut-off object', body.slice(0, -1) || '{'],
    ['something after the object', `${body}x`],
    ['a trailing comma', '{"a":1,}'],
    ['single quotes', "{'a':1}"],
    ['NaN', '{"a":NaN}'],
    ['a raw line break in a string', '{"a":"\n"}'],
    ['nesting of 5000', `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`],
  ])('refuses %s as malformed', async (_, sent) => {
    expectProblem(await send(sent), { status: 400, code: 'malformed_json', instance: path });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('refuses bytes that are no UTF-8 as malformed', async () => {
    for (const bad of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82]]) {
      const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bad), Buffer.from('"}')]);
      expectProblem(await send(bytes), { status: 400, code: 'malformed_json' });
    }
    expect(stage.upstream.calls).toEqual([]);
  });

  test.each(['[]', '"text"', '1', 'null', 'true'])('refuses %s, which is no object', async (sent) => {
    expectProblem(await send(sent), { status: 400, code: 'validation_failed' });
    expect(stage.upstream.calls).toEqual([]);
  });

  const MANY: readonly (readonly [string, string])[] = [
    ['fields', `{${Array.from({ length: 6_400 }, (_, at) => `"${at.toString(36)}":0`).join(',')}}`],
    [
      'keys of a map',
      `{"proxy_countries":{${Array.from({ length: 6_400 }, (_, at) => `"${at.toString(36)}":""`).join(',')}}}`,
    ],
    ['items', `{"x":[${'0,'.repeat(30_000)}0]}`],
    ['objects', `{"x":[${'{},'.repeat(20_000)}{}]}`],
  ];

  test.each(MANY)('refuses too many %s without looking at each', async (_, sent) => {
    const answer = await send(sent);
    const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed', instance: path });
    expect(errors).toEqual([{ code: 'too_big', message: expect.stringContaining('1000'), field: null }]);
    expect(stage.upstream.calls).toEqual([]);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    '',
  ])('refuses a body of type %j', async (type) => {
    const answer = await send(body || '{}', { 'Content-Type': type });
    expectProblem(answer, { status: 415, code: 'unsupported_media_type', instance: path });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('refuses a body that is too large, by what it says', async () => {
    const answer = await stage.raw(
      requestText({
        method,
        target: path,
        headers: [
          ['Authorization', `Token ${secret()}`],
          ['Content-Type', 'application/json'],
          ['Content-Length', '65537'],
        ],
      }),
    );
    expectProblem(answer, { status: 413, code: 'payload_too_large', instance: path });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('refuses a body that is too large, by what comes', async () => {
    const head = requestText({
      method,
      target: path,
      headers: [
        ['Authorization', `Token ${secret()}`],
        ['Content-Type', 'application/json'],
        ['Transfer-Encoding', 'chunked'],
      ],
    });
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`;
    const answer = await stage.raw(`${head}${chunk.repeat(4)}1\r\n \r\n`);
    expectProblem(answer, { status: 413, code: 'payload_too_large', instance: path });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('needs no length of the body', async () => {
    stage.upstream.on(`${method} ${path}`, json(200, exampleBody(id)));
    const headers = [
      ['Authorization', `Token ${secret()}`],
      ['Content-Type', 'application/json'],
      ['Transfer-Encoding', 'chunked'],
    ] as const;
    const [start, rest] = [body.slice(0, 1), body.slice(1)];
    const chunks = `1\r\n${start}\r\n${rest.length.toString(16)};x=1\r\n${rest}\r\n0\r\nX-Trailer: x\r\n\r\n`;
    expect((await stage.raw(requestText({ method, target: path, headers }) + chunks)).status).toBe(200);
    expect(stage.upstream.calls.map((sent) => sent.body)).toEqual([body]);
  });
});
