import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { compressing, type Gzip } from '../../src/entry/node/compression.ts';
import { json } from '../support/scripted-upstream.ts';
import { exampleBody, exampleRequest } from '../support/examples.ts';
import { cachedIds, policyOf } from '../support/table.ts';
import { expectPacked, expectPlain } from './bytes.ts';
import { MARK, openLarge } from './helpers.ts';

const copyOf = (text: string) => ({ text });

/** What compresses, and how often it has. */
function counted(maxBytes = 1_048_576) {
  const made: string[] = [];
  const gzip: Gzip = (body) => {
    made.push(Buffer.from(body).toString());
    return new Uint8Array(gzipSync(body));
  };
  return { made, compress: compressing(maxBytes, gzip) };
}

describe.each(cachedIds)('a copy of %s', (id) => {
  test('is compressed once, and anew when it is another one', async () => {
    const { made, compress } = counted();
    const { take, advance, upstream } = await openLarge({}, { compress });
    const asked = exampleRequest(id);
    for (let times = 0; times < 3; times++) await take(asked, times === 1 ? 'gzip, br' : 'gzip');
    expect(made).toHaveLength(1);
    await take(asked);
    expect(made).toHaveLength(1);
    upstream.on(() => true, json(200, exampleBody(id).replace('{', `{"x_other":"${MARK}",`)));
    advance(policyOf(id).fresh + policyOf(id).stale + 1);
    const [first, second] = [await take(asked, 'gzip'), await take(asked, 'gzip')];
    expect(made).toHaveLength(2);
    for (const answer of [first, second]) expect(answer.text).toContain('x_other');
  });
});

const LIST = '/api/v2/payment/transaction/';

test('a page whose links have the origin is compressed once for each origin, and never given another’s', async () => {
  const { made, compress } = counted();
  const { take, upstream } = await openLarge({}, { compress });
  upstream.on(
    `GET ${LIST}`,
    json(200, { next: `${upstream.url}${LIST}?page=2`, previous: null, results: [], x: MARK }),
  );
  const at = (host: string) => take({ path: LIST, headers: { host } }, 'gzip');
  for (const host of ['a.example', 'a.example', 'b.example', 'b.example'])
    expect((await at(host)).text).toContain(`"http://${host}${LIST}?page=2"`);
  expect(made).toHaveLength(2);
});

test('what is made of several is compressed each time', async () => {
  const { made, compress } = counted();
  const { take } = await openLarge({}, { compress });
  for (let times = 0; times < 3; times++) await take({ path: '/bff/v1/account-overview' }, 'gzip');
  expect(made).toHaveLength(3);
});

test('what is never cached is compressed each time', async () => {
  const { made, compress } = counted();
  const { take } = await openLarge({}, { compress });
  for (let times = 0; times < 2; times++) await take(exampleRequest('getPendingPayment'), 'gzip');
  expect(made).toHaveLength(2);
});

describe('by itself', () => {
  const request = { route: { mayBeCompressed: true }, header: () => 'gzip' };

  function opened(maxBytes: number) {
    const { made, compress } = counted(maxBytes);
    const send = (body: string, copy?: object) => {
      const headers = { 'Content-Type': 'application/json' };
      const bytes = compress(request, { status: 200, body, ...(copy && { copy }) }, headers, true);
      expect(gunzipSync(bytes ?? '').toString()).toBe(body);
    };
    return { made, send };
  }

  test('what is kept has a bound: beyond it all is forgotten', () => {
    const [one, two] = [copyOf('1'.repeat(2_000)), copyOf('2'.repeat(2_000))];
    const roomy = opened(2_000);
    const narrow = opened(800);
    for (const { send } of [roomy, narrow]) for (const copy of [one, two, one, two]) send(copy.text, copy);
    expect([roomy.made.length, narrow.made.length]).toEqual([2, 4]);
  });

  test('one that is larger than all may be is not kept', () => {
    const { made, send } = opened(300);
    const copy = copyOf('1'.repeat(2_000));
    for (let times = 0; times < 2; times++) send(copy.text, copy);
    expect(made).toHaveLength(2);
  });

  test('a body that is not the copy’s own text counts as a whole', () => {
    const { made, send } = opened(2_000);
    const [one, two] = [copyOf('1'), copyOf('2')];
    for (const copy of [one, two, one]) send(copy.text.repeat(2_000), copy);
    expect(made).toHaveLength(3);
  });
});

/** Bytes, and how many characters they are of. */
const SIZES = [
  [1_023, 'x', false],
  [1_024, 'x', true],
  [1_022, 'é', false],
  [1_024, 'é', true],
  [1_023, '漢', false],
  [1_026, '漢', true],
] as const;

test.each(SIZES)('a body of %i bytes in characters such as %s is compressed: %s', async (size, character, isLarge) => {
  const { take, upstream } = await openLarge();
  const room = size - '{"x":""}'.length;
  const width = Buffer.byteLength(character);
  const text = `{"x":"${character.repeat(Math.floor(room / width))}${'x'.repeat(room % width)}"}`;
  expect(Buffer.byteLength(text)).toBe(size);
  const asked = exampleRequest('getSubscription');
  upstream.on(() => true, json(200, text));
  const plain = await take(asked);
  const answer = await take(asked, 'gzip');
  if (isLarge) return expectPacked(answer, plain);
  expectPlain(answer);
  expect(answer.headers['vary']).not.toContain('Accept-Encoding');
});
