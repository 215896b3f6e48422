import { describe, expect, test } from 'vitest';
import { overview } from '../../src/gateway/overviews.ts';
import { json } from '../support/scripted-upstream.ts';
import { varyOf } from '../http/cors.ts';
import { overviewTable } from '../overviews/helpers.ts';
import { openOwn, rows } from '../overviews/own.ts';
import { allOperations, type OperationId } from '../support/account-api.ts';
import { exampleRequest } from '../support/examples.ts';
import type { CallOptions } from '../support/http.ts';
import { postIds, readIds, rowOf } from '../support/table.ts';
import { expectPacked, expectPlain, receive } from './bytes.ts';
import { MARK, openLarge } from './helpers.ts';

const ACCEPTED = [
  [undefined, false],
  ['identity', false],
  ['gzip;q=0', false],
  ['gzip', true],
  ['gzip, deflate, br, zstd', true],
  ['*', true],
] as const;

const hasBody = (id: OperationId) => rowOf(id).answer !== null;
const isSecret = (id: OperationId) => rowOf(id).secrets !== undefined;
const secretIds = allOperations.map(({ id }) => id).filter(isSecret);

/** One road for all that are read: a thing, a page, and what is never cached. */
const READS = ['getSubscription', 'listTransactions', 'getPendingPayment'] as const;
const batchOf = (ids: readonly OperationId[]): CallOptions => ({
  path: '/bff/v1/batch',
  method: 'POST',
  body: { requests: ids.map((id) => ({ id, path: exampleRequest(id).path })) },
});
const overviews = overviewTable.map(([path]) => [path, { path }] as const);
const KEPT: readonly (readonly [string, CallOptions])[] = [
  ...overviews,
  ...READS.slice(0, 2).map((id) => [id, exampleRequest(id)] as const),
];

describe.each<readonly [string, CallOptions]>([
  ...overviews,
  ...READS.map((id) => [id, exampleRequest(id)] as const),
  ['a batch', batchOf(READS)],
])('%s', (_, asked) => {
  test.each(ACCEPTED)('for `Accept-Encoding: %s` is compressed: %s, and the same', async (accepted, isTaken) => {
    const { take } = await openLarge();
    await take(asked);
    const plain = await take(asked);
    expectPlain(plain);
    for (const part of [MARK, '2.50', '9007199254740993123']) expect(plain.text).toContain(part);
    const answer = await take(asked, accepted);
    if (isTaken) expectPacked(answer, plain);
    else expect([answer.text, answer.headers['etag']]).toEqual([plain.text, plain.headers['etag']]);
    if (!isTaken) expectPlain(answer);
    for (const one of [plain, answer]) expect(varyOf(one)).toContain('Accept-Encoding');
  });
});

describe.each(KEPT)('%s', (_, asked) => {
  test.each(['gzip', 'identity'])('is a 304 for the ETag that was got with %s, in the same form', async (accepted) => {
    const { take } = await openLarge();
    const { etag = '' } = (await take(asked, accepted)).headers;
    expect(etag.startsWith('W/')).toBe(accepted === 'gzip');
    for (const again of ['gzip', undefined]) {
      const answer = await take({ ...asked, headers: { 'if-none-match': `"x", ${etag}` } }, again);
      expect(answer).toMatchObject({ status: 304, text: '', headers: { etag } });
      expect(answer.headers).not.toHaveProperty('content-encoding');
      expect(varyOf(answer)).toContain('Accept-Encoding');
    }
  });

  test('has the same headers for HEAD', async () => {
    const { take } = await openLarge();
    await take(asked);
    for (const accepted of ['gzip', 'identity']) {
      const [got, head] = [await take(asked, accepted), await take({ ...asked, method: 'HEAD' }, accepted)];
      expect(head).toMatchObject({ status: 200, text: '' });
      for (const name of ['content-length', 'content-encoding', 'content-type', 'etag', 'vary'])
        expect([name, head.headers[name]]).toEqual([name, got.headers[name]]);
    }
  });
});

test.each(secretIds)('%s, which carries a secret, is never compressed, nor are its problems', async (id) => {
  const { take, upstream } = await openLarge();
  const asked = exampleRequest(id);
  const good = await take(asked, 'gzip');
  upstream.on(() => true, json(400, { detail: MARK, code: 'no' }));
  const bad = await take(asked, 'gzip');
  expect([good.status, bad.status]).toEqual([200, 400]);
  for (const answer of [good, bad]) {
    expectPlain(answer);
    expect(answer.bytes.length).toBeGreaterThan(1_024);
    expect(varyOf(answer)).not.toContain('Accept-Encoding');
  }
});

test.each(readIds.filter(isSecret))('a batch with %s is not compressed', async (id) => {
  const { take } = await openLarge();
  expectPlain(await take(batchOf(['getSubscription', id]), 'gzip'));
});

test('an overview with a section that carries a secret is not compressed', async () => {
  const path = '/bff/v1/key-overview';
  const { on, gateway, token } = await openOwn([
    overview(path, { books: { read: rows.listBooks }, key: { read: rows.getKey } }),
  ]);
  on('/book/', `{"count":0,"next":null,"previous":null,"results":[],"x":"${MARK}"}`);
  on('/key/', '{"key":"abc"}');
  const answer = await receive(gateway.url, { path, token }, 'gzip');
  expect(answer.text).toContain('abc');
  expectPlain(answer);
});

test.each(postIds.filter((id) => hasBody(id)))(
  'a replay of %s is compressed unless it carries a secret',
  async (id) => {
    const { take } = await openLarge();
    const asked = { ...exampleRequest(id), headers: { 'idempotency-key': 'one' } };
    await take(asked);
    const [plain, again] = [await take(asked), await take(asked, 'gzip')];
    expect(again.headers).toMatchObject({ 'idempotency-replayed': 'true' });
    if (isSecret(id)) expectPlain(again);
    else expectPacked(again, plain);
  },
);

test.each(overviewTable)('%s as lines is not compressed', async (path) => {
  const { take } = await openLarge();
  const answer = await take({ path, headers: { accept: 'application/x-ndjson' } }, 'gzip');
  expect(answer.text).toContain(MARK);
  expect(answer.headers).not.toHaveProperty('content-encoding');
});

test('a problem is compressed like an answer', async () => {
  const { take, upstream } = await openLarge();
  upstream.on(() => true, json(400, { detail: MARK, code: 'no' }));
  const asked = { path: '/api/v2/subscription/', headers: { 'x-request-id': 'one' } };
  const answer = await take(asked, 'gzip');
  expect(answer).toMatchObject({ status: 400, headers: { 'content-type': 'application/problem+json' } });
  expectPacked(answer, await take(asked));
});
