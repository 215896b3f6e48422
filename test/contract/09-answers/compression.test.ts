import { gunzipSync } from 'node:zlib';
import { Hono } from 'hono';
import { describe, expect, onTestFinished, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { type Asking, openGateway } from '../../support/gateway.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';

const GZIP = { 'accept-encoding': 'gzip' };
/** Worth compressing. */
const MARK = 'é'.repeat(600);
const LIST = '/api/v2/payment/transaction/';
const LARGE = answer(200, { x: MARK, next: `http://upstream.test${LIST}?page=2`, count: 0, results: [] });
const PROBLEM = answer(400, { detail: MARK, code: 'no' });
const READ = '/api/v2/subscription/';
const BATCH = { requests: [{ id: 'a', path: READ }] };
/** Its platform does it. */
const HERE = { not: ['workerd'] } as const;

everywhere(
  says('JSON of 1 KiB or more is gzipped for those who accept it'),
  async ({ ask, upstream }) => {
    for (const x of ['x'.repeat(1_016), '漢'.repeat(339), 'x'.repeat(1_015)]) {
      upstream.next('getPendingPayment', answer(200, { x }), answer(200, { x }));
      const { headers } = await ask('getPendingPayment', { headers: GZIP });
      expect(headers.get('content-encoding')).toBe(x.length === 1_015 ? null : 'gzip');
      expect((await ask('getPendingPayment')).headers.get('content-encoding')).toBe(null);
    }
  },
  HERE,
);

everywhere(
  says('where the platform does not do that itself'),
  async ({ ask, upstream }) => {
    upstream.next('getSubscription', LARGE);
    const { headers, text } = await ask('getSubscription', { headers: GZIP });
    expect([headers.get('content-encoding'), text.includes(MARK)]).toEqual([null, true]);
  },
  { not: ['process', 'node', 'fleet'] },
);

everywhere(
  says('(`Vary`; its ETag is weak, and taken like the strong one)'),
  async ({ ask, upstream }) => {
    upstream.next('getSubscription', LARGE);
    const got = [await ask('getSubscription', { headers: GZIP }), await ask('getSubscription')];
    const [weak = '', strong = ''] = got.map(({ headers }) => headers.get('etag')!);
    expect(weak).toBe(`W/${strong}`);
    for (const etag of [weak, strong])
      for (const headers of [GZIP, {}])
        got.push(await ask('getSubscription', { headers: { ...headers, 'if-none-match': `"x", ${etag}` } }));
    for (const { headers } of got) expect(headers.get('vary')).toBe('Authorization, Accept-Encoding');
    const same = got.slice(2).map(({ status, text, headers }) => [status, text, headers.get('etag')]);
    expect(same).toEqual([weak, weak, strong, strong].map((etag) => [304, '', etag]));
  },
  HERE,
);

/** A gateway whose upstream has large answers. `take`: the bytes of an answer, and what they are unpacked. */
function openLarge(reply = LARGE) {
  const { app, request, upstream, me } = openGateway();
  const kept = ['getSubscription', 'listTransactions', 'refreshSubuser'] as const;
  const secrets = ['createApiKey', 'getApiKey', 'purchasePlan', 'loginSocial'] as const;
  for (const id of [...kept, ...secrets]) upstream.next(id, reply, reply, reply);
  onTestFinished(() => upstream.clear()); // not all are asked for
  const take = async (path: string, { headers, ...asking }: Asking = {}, accept: object = GZIP) =>
    unpacked(await request(path, { ...asking, headers: { ...headers, ...accept } }));
  return { app: app as Hono, me, take };
}

async function unpacked(response: Response) {
  const { status, headers } = response;
  const bytes = Buffer.from(await response.arrayBuffer());
  const isPacked = headers.get('content-encoding') === 'gzip';
  return { status, headers, bytes, isPacked, text: String(isPacked && bytes.length > 0 ? gunzipSync(bytes) : bytes) };
}

describe(says('for those who accept it'), () => {
  test.each<[string, string, Asking]>([
    ['a thing', READ, {}],
    ['an overview', '/bff/v1/account-overview', {}],
    ['a batch', '/bff/v1/batch', { body: BATCH }],
    ['a replay', exampleRequest('refreshSubuser').path, { method: 'POST', key: 'one' }],
    ['a page of the docs', '/docs/swagger-ui.css', {}],
    ['the document', '/openapi.json', {}],
  ])('%s is the same compressed', async (_, path, asking) => {
    const { take } = openLarge();
    await take(path, asking);
    const [plain, packed] = [await take(path, asking, {}), await take(path, asking)];
    expect([plain.isPacked, packed.isPacked, packed.status, packed.text]).toEqual([false, true, 200, plain.text]);
    for (const { headers } of [packed, plain]) expect(headers.get('vary')).toContain('Accept-Encoding');
    expect(packed.headers.get('content-type')).toBe(plain.headers.get('content-type'));
  });

  test('a problem is, too', async () => {
    const { status, isPacked, text } = await openLarge(PROBLEM).take(READ);
    expect([status, isPacked, text.includes('ééé')]).toEqual([400, true, true]);
  });

  test.each<[isTaken: boolean, accepted: readonly string[]]>([
    [true, ['gzip, deflate, br, zstd', '*', 'gzip, identity;q=0', 'GZIP;q=1.0, *;q=0']],
    [false, ['identity', 'gzip;q=0', 'gzip;q=0, *', '*;q=0.5, identity;q=0.6', 'gzip;q=0.5, *;q=1', 'identity;q=0']],
    [false, ['gzipped', 'x;gzip', ',,', '', 'gzip;level=9;q=0']],
  ])('%s for each of %j, and when that comes again', async (isTaken, all) => {
    const { take } = openLarge();
    for (const accepted of [...all, ...all]) {
      const { isPacked } = await take(READ, {}, { 'accept-encoding': accepted });
      expect([accepted, isPacked]).toEqual([accepted, isTaken]);
    }
  });

  test.each([GZIP, {}])('HEAD has the headers of GET with %j', async (accept) => {
    const { take } = openLarge();
    const [got, head] = [await take(READ, {}, accept), await take(READ, { method: 'HEAD' }, accept)];
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', `${got.bytes.length}`]);
    for (const name of ['content-encoding', 'content-type', 'etag', 'vary'])
      expect([name, head.headers.get(name)]).toEqual([name, got.headers.get(name)]);
  });

  test('a page is never given with the links of another origin', async () => {
    const { take } = openLarge();
    for (const host of ['a.example', 'a.example', 'b.example', 'a.example'])
      expect((await take(`http://${host}${LIST}`)).text).toContain(`"http://${host}${LIST}?page=2"`);
  });
});

describe(says('but not what has secrets in it.'), () => {
  test.each(['createApiKey', 'getApiKey', 'purchasePlan', 'loginSocial'] as const)('%s', async (id) => {
    const { path, ...asking } = exampleRequest(id);
    const keyed = asking.method === 'POST' ? { ...asking, key: 'one' } : asking;
    const good = openLarge();
    const answers = [await good.take(path, keyed), await good.take(path, keyed)];
    answers.push(await openLarge(PROBLEM).take(path, keyed));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400]);
    for (const { isPacked, headers, bytes } of answers) {
      expect([isPacked, bytes.length > 1_024]).toEqual([false, true]);
      expect(headers.get('vary') ?? '').not.toContain('Accept-Encoding');
    }
  });

  test('nor a batch with such a thing, nor an overview in lines', async () => {
    const { take } = openLarge();
    const requests = [...BATCH.requests, { id: 'b', path: exampleRequest('getApiKey').path }];
    expect((await take('/bff/v1/batch', { body: { requests } })).isPacked).toBe(false);
    const lines = { headers: { accept: 'application/x-ndjson' } };
    expect((await take('/bff/v1/account-overview', lines)).isPacked).toBe(false);
  });
});
