import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleBody, exampleRequest } from '../../support/examples.ts';
import { type Asked, type Asking, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { readIds } from '../../support/table.ts';
import { answer, hang } from '../../support/upstream.ts';
import { textOf } from './helpers.ts';

const BATCH = '/bff/v1/batch';
const SUBSCRIPTION = '/api/v2/subscription/';
const LIST = '/api/v2/payment/transaction/';
const TWENTY = Array.from({ length: 20 }, (_, at) => `${LIST}${at + 1}/`);

interface Item {
  readonly id: string;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const requestsOf = (paths: readonly string[]) => ({ requests: paths.map((path, at) => ({ id: `r${at}`, path })) });

/** A batch of these paths, named r0, r1, … */
async function batch({ call: by }: Pick<Asked, 'call'>, paths: readonly string[], asking: Asking = {}) {
  const { json, text, headers } = await by(BATCH, { body: requestsOf(paths), ...asking });
  const responses = json.responses as readonly Item[];
  return { responses, statuses: responses.map(({ status }) => status), text, headers };
}

everywhere(
  says(
    '`POST /bff/v1/batch` `{"requests":[{"id":"a","path":"/api/v2/subscription/"},…]}`, 1 to 20 GETs with distinct ids → `{"responses":[{"id":"a","status":200,"body":{…}},…]}` in order, problems inside',
  ),
  async (stage) => {
    const ids = readIds.filter((id) => id !== 'getEarnOut').slice(0, 18);
    stage.upstream.next('getSubscription', answer(404, { detail: 'None.' }));
    const paths = [SUBSCRIPTION, '/api/v2/nothing/', ...ids.map((id) => exampleRequest(id).path)];
    await stage.ask('getEarnOut');
    const { responses, text, headers } = await batch(stage, paths);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(responses.map(({ id }) => id)).toEqual(paths.map((_, at) => `r${at}`));
    for (const [at, id] of ids.entries())
      if (!['getSubscription', 'listPaymentMethods'].includes(id))
        expect(text).toContain(`{"id":"r${at + 2}","status":200,"body":${textOf(id)}}`);
    expect(responses[0]).toMatchObject({ status: 404, body: { code: 'not_found', instance: SUBSCRIPTION } });
    expect(responses[1]).toMatchObject({ status: 404, body: { code: 'unknown_endpoint', title: expect.any(String) } });
    expect(stage.upstream.calls).toHaveLength(1 + 18);
  },
);

everywhere(
  says('together at most `UPSTREAM_MAX_BODY_BYTES`, an item beyond that is a problem `payload_too_large`.'),
  async (stage) => {
    const large = `{"p":"${'é'.repeat(1_000_000)}"}`; // two bytes each, of five million
    stage.upstream.next('getSubscription', answer(200, large));
    const { responses, statuses, text } = await batch(stage, [SUBSCRIPTION, SUBSCRIPTION, SUBSCRIPTION, TWENTY[0]!]);
    expect([statuses, text.split(large).length]).toEqual([[200, 200, 413, 200], 3]);
    expect(responses[2]!.body).toMatchObject({ code: 'payload_too_large', retryable: false, instance: SUBSCRIPTION });
  },
);

everywhere(says('Until a credential has been accepted the first item goes alone'), async (stage) => {
  const held = Array.from({ length: 3 }, () => stage.upstream.hold('getTransaction'));
  const answered = batch(stage, TWENTY);
  await held[0]!.call;
  await stage.call(SUBSCRIPTION, { token: secret() }); // the others would have been sent by now
  expect(stage.upstream.callsTo('getTransaction')).toHaveLength(1);
  held[0]!.release();
  await stage.upstream.arrived('getTransaction', 20);
  for (const { release } of held) release();
  expect((await answered).statuses).toEqual(TWENTY.map(() => 200));
});

everywhere(says('after a 401 or 403 the others get that problem.'), async (stage) => {
  stage.upstream.next('getTransaction', answer(403, { detail: 'Two factors.', code: '2fa_needed' }));
  const paths = [...TWENTY.slice(0, 18), `${SUBSCRIPTION}?secret=x`, TWENTY[0]!];
  for (const [at, { status, body }] of (await batch(stage, paths)).responses.entries()) {
    expect([status, body['code'], body['detail']]).toEqual([403, '2fa_needed', 'Two factors.']);
    expect(body['instance']).toBe(paths[at]!.split('?')[0]);
  }
  expect(stage.upstream.calls).toHaveLength(1);
});

const gateway = openGateway();
const { ask, call, upstream, pass, idle } = gateway;

test('all are sent at once where the credential has been accepted', async () => {
  const token = secret();
  await ask('getApiKey', { token });
  const held = TWENTY.map(() => upstream.hold('getTransaction'));
  const answered = batch(gateway, TWENTY, { token });
  await Promise.all(held.map((one) => one.call));
  for (const { release } of held.toReversed()) release();
  expect((await answered).statuses).toEqual(TWENTY.map(() => 200));
});

test.each([400, 500])('it goes on one by one after a %i, which shows nothing', async (status) => {
  upstream.next('getTransaction', answer(status), answer(401));
  const paths = ['/api/v2/nothing/', `${LIST}?page=x`, TWENTY[0]!, TWENTY[0]!, ...TWENTY.slice(1, 9)];
  const { responses, statuses } = await batch(gateway, paths, { token: secret() });
  expect(statuses.slice(4)).toEqual(Array(8).fill(401));
  expect(responses[2]!.body).toMatchObject({ code: responses[3]!.body['code'] });
  expect(upstream.calls).toHaveLength(2);
});

test('it sends nothing more when its client has left', async () => {
  upstream.next('getTransaction', hang());
  const leaving = new AbortController();
  const left = call(BATCH, { token: secret(), signal: leaving.signal, body: requestsOf(TWENTY) });
  await pass(0);
  leaving.abort();
  await Promise.all([left, idle()]);
  expect(upstream.calls).toHaveLength(1);
});

test.each([
  ['/api/v2/referral/config/', {}],
  ['/api/v2/apikey/12345/', {}],
  ['/api/v2/referral/config/', { 'Cache-Control': 'no-store' }],
])('equal ones of %s have one call: %j', async (path, headers) => {
  const { statuses } = await batch(gateway, [path, path.slice(0, -1), `${path}?`], { token: secret(), headers });
  expect([statuses, upstream.calls.length]).toEqual([[200, 200, 200], 1]);
});

test('queries are sent as they are, links point at the gateway, ids may be any text', async () => {
  const queries = ['', '?page=2', '?page=2&x=a%20b', "?odd=a?b=c/..//'()*!~%2F%00&empty=&&[]={}|"];
  const page = exampleBody('listTransactions', { next: `http://upstream.test${LIST}?page=2` });
  upstream.next('listTransactions', answer(200, page));
  const paths = queries.map((query) => LIST.slice(0, -1) + query);
  const { responses } = await batch(gateway, paths, { token: secret() });
  expect(upstream.calls.map(({ target }) => target)).toEqual(queries.map((query) => LIST + query));
  expect(responses[0]!.body['next']).toBe(`http://localhost${LIST}?page=2`);
  const ids = ['"', '\\', 'é\n', '__proto__', '0', ' ', '😀', 'x'.repeat(64)];
  const { json } = await call(BATCH, { body: { requests: ids.map((id) => ({ id, path: SUBSCRIPTION })) } });
  expect((json.responses as Item[]).map(({ id }) => id)).toEqual(ids);
});

const sized = (bytes: number) => answer(200, `{"p":"${'x'.repeat(bytes - 8)}"}`);

test('bodies weigh what they are with the links of the gateway, problems too, to the byte', async () => {
  const limited = openGateway({ UPSTREAM_MAX_BODY_BYTES: '1000', PUBLIC_URL: `https://${'long-name.'.repeat(20)}x` });
  const statuses = async (...paths: string[]) => (await batch(limited, paths)).statuses;
  limited.upstream.next('getTransaction', sized(400), sized(601), sized(600), sized(9));
  expect(await statuses(...TWENTY.slice(0, 4))).toEqual([200, 413, 200, 413]);
  const page = answer(200, { next: `http://upstream.test${LIST}?page=3`, previous: null, results: [] });
  limited.upstream.next('listTransactions', page);
  expect(await statuses(LIST, LIST, LIST, LIST)).toEqual([200, 200, 200, 413]);
  limited.upstream.next('getPendingPayment', answer(400, { detail: 'y'.repeat(200) }));
  const pending = '/api/v2/payment/pending/1/';
  expect(await statuses(...Array<string>(4).fill(pending))).toEqual([400, 413, 413, 413]);
});

/** Made to get elsewhere, or nothing that a batch may read. */
const NOWHERE = String.raw`/ /api/v2/subscription// /API/v2/subscription/ /livez /bff/v1/batch /bff/v1/account-overview
  /api/v2/payment/method/abc/ //evil.example/api/v2/subscription/ /http://evil.example/api/v2/subscription/
  /@evil.example/api/v2/subscription/ /\evil.example/api/v2/subscription/ /api/v2/payment/method/7/../8/
  /api/v2/payment/method/7%2f/ /api/v2/payment/method/7;x=1/ /api/v2/subscription/%3Fx=1`.split(/\s+/);

test('what is nowhere is a 404 of its own, what is no GET a 405, and no call', async () => {
  const { responses } = await batch(gateway, NOWHERE);
  for (const [at, path] of NOWHERE.entries())
    expect(responses[at]).toMatchObject({ status: 404, body: { code: 'unknown_endpoint', instance: path } });
  expect((await batch(gateway, ['/api/v2/subscription/checkout/purchase/'])).statuses).toEqual([405]);
  expect(upstream.calls).toEqual([]);
});

const item = (id: unknown, path: unknown = SUBSCRIPTION) => ({ id, path });
const many = (count: number) => Array.from({ length: count }, (_, at) => item(`r${at}`));
const PATHS = [...'http://a.example/|api/v2/||/#x|/\r\nX: 1|/? HTTP/1.1|/?\0|/?é'.split('|'), '/'.padEnd(4097, 'x'), 2];
const noBatch: readonly (readonly [body: unknown, fields: readonly (string | null)[]])[] = [
  ...[[], 'null', '"x"', { requests: many(1_000) }].map((body) => [body, [null]] as const),
  ...[{}, { requests: {} }, { requests: [] }, { requests: many(21) }].map((body) => [body, ['requests']] as const),
  [{ requests: [item('a'), item('b'), item('a')] }, ['requests']],
  [{ requests: [null, { ...item('a'), method: 'POST' }] }, ['requests.0', 'requests.1.method']],
  [{ requests: [item(''), item(1), item('x'.repeat(65))] }, [0, 1, 2].map((at) => `requests.${at}.id`)],
  [{ requests: PATHS.map((path, at) => item(`r${at}`, path)) }, PATHS.map((_, at) => `requests.${at}.path`)],
];

test.each(noBatch)('what is no batch is refused as a whole: %j', async (body, fields) => {
  const { code, json } = await call(BATCH, { body });
  expect(code).toBe('validation_failed');
  expect((json.errors as { field: unknown }[]).map(({ field }) => field)).toEqual(fields);
  expect(upstream.calls).toEqual([]);
});

test.each<readonly [why: string, asking: Asking, status: number, code: string]>([
  ['malformed JSON', { body: '{"requests":[' }, 400, 'malformed_json'],
  ['65,537 bytes', { body: JSON.stringify({ requests: many(1) }).padEnd(65_537) }, 413, 'payload_too_large'],
  ['a key: it writes nothing', { body: { requests: many(1) }, key: 'k1' }, 400, 'validation_failed'],
  ['no credential', { body: { requests: many(1) }, token: null }, 401, 'unauthenticated'],
])('a batch with %s is refused', async (_, asking, status, code) => {
  expect(await call(BATCH, asking)).toMatchObject({ status, code });
  expect(upstream.calls).toEqual([]);
});
