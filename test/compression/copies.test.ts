import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { compressing, type Gzip } from '../../src/entry/node/compression.ts';
import { json } from '../support/scripted-upstream.ts';
import { exampleBody, exampleRequest } from '../support/examples.ts';
import { policyOf } from '../support/table.ts';
import { expectPacked, expectPlain } from './bytes.ts';
import { MARK, openLarge } from './helpers.ts';

/** What compresses, and how often it has. */
function counted(maxBytes = 1_048_576) {
  const made: string[] = [];
  const gzip: Gzip = (body) => {
    made.push(Buffer.from(body).toString());
    return new Uint8Array(gzipSync(body));
  };
  return { made, compress: compressing(maxBytes, gzip) };
}

describe.each(['getSubscription', 'listTransactions', 'getPaymentMethod'] as const)('a copy of %s', (id) => {
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

test('what is kept compressed has a bound', async () => {
  const { made, compress } = counted(800);
  const { take } = await openLarge({}, { compress });
  for (let times = 0; times < 2; times++)
    for (const id of ['getSubscription', 'getReferralConfig'] as const) await take(exampleRequest(id), 'gzip');
  expect(made).toHaveLength(4);
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
