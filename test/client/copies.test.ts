import { describe, expect, test } from 'vitest';
import { type CallOptions, type ClientOptions, keepCopies, type Portico } from '../../client/src/index.ts';
import { ETAG, FAILED, isConditional, json, openStandIn, revalidated, SUBSCRIPTION } from './helpers.ts';

function openReader(options: ClientOptions = {}) {
  const standIn = openStandIn({ copies: keepCopies(), ...options });
  standIn.gateway.on('*', revalidated);
  return { ...standIn, asked: () => standIn.gateway.calls.map(isConditional) };
}

/** One of many things to read: whose answer came, and for what. */
const read = (portico: Portico, id: number, options?: CallOptions) =>
  portico.getTransaction({ id }, options) as unknown as Promise<{ of: string }>;

describe('a second read', () => {
  test('sends the ETag of the first, and gives back what that one said', async () => {
    const { gateway, portico, asked } = openReader();
    const answers = [await read(portico, 1), await read(portico, 1), await read(portico, 1)];
    expect(asked()).toEqual([false, true, true]);
    expect(answers).toEqual(Array(3).fill(answers[0]));
    expect(gateway.calls[1]!.headers).toMatchObject({ 'if-none-match': ETAG, 'cache-control': 'max-age=0' });
  });

  test('has nothing of what its caller has done to the first: copies are not mutated', async () => {
    const { gateway, portico } = openStandIn({ copies: keepCopies() });
    gateway.on('*', json(200, { results: [{ id: 2 }, { id: 1 }] }, { etag: ETAG }), json(304, '', { etag: ETAG }));
    for (let time = 0; time < 3; time += 1) {
      const { results } = await portico.listTransactions();
      expect(results).toEqual([{ id: 2 }, { id: 1 }]);
      results.pop();
      results[0]!.id = 7;
    }
    expect(gateway.calls.map(isConditional)).toEqual([false, true, true]);
  });

  test('with an ETag of its caller’s own is answered with no copy', async () => {
    const { portico } = openReader();
    await read(portico, 1);
    const asked = read(portico, 1, { headers: { 'If-None-Match': ETAG } });
    await expect(asked).rejects.toMatchObject({ code: 'unexpected_answer', status: 304 });
  });

  test('of what has changed is another answer, whose ETag counts from then on', async () => {
    const { gateway, portico } = openStandIn({ copies: keepCopies() });
    const [one, two] = ['"1"', '"2"'].map((etag, n) => json(200, { n }, { etag }));
    gateway.on('*', one!, two!, json(304, '', { etag: '"2"' }));
    const answers = [await read(portico, 1), await read(portico, 1), await read(portico, 1)];
    expect(answers).toEqual([{ n: 0 }, { n: 1 }, { n: 1 }]);
    expect(gateway.calls.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"1"', '"2"']);
  });

  test.for([
    ['without an ETag', {}],
    ['that says `no-store`, such as a pending payment', { etag: ETAG, 'cache-control': 'no-store' }],
  ])('of an answer %s is a first one', async ([, headers]) => {
    const { gateway, portico } = openStandIn({ copies: keepCopies() });
    gateway.on(SUBSCRIPTION, json(200, {}, headers as Record<string, string>));
    await portico.getSubscription();
    await portico.getSubscription();
    expect(gateway.calls.map(isConditional)).toEqual([false, false]);
  });

  test('is what a failure leaves it: the copy stays for the next try', async () => {
    const { gateway, portico, asked } = openReader();
    const first = await read(portico, 1);
    gateway.once('*', FAILED);
    expect(await read(portico, 1)).toEqual(first);
    expect(asked()).toEqual([false, true, true]);
  });
});

test('another account never has the copy of the first, though its ETag is the same', async () => {
  let token = 'one';
  const { portico, asked } = openReader({ token: () => token });
  const one = await read(portico, 1);
  token = 'two';
  expect([one, await read(portico, 1)]).toMatchObject([{ of: 'Token one' }, { of: 'Token two' }]);
  token = 'one';
  expect(await read(portico, 1)).toEqual(one);
  expect(asked()).toEqual([false, false, false]); // copies are of one account at a time
});

/** Which of these are still there. */
const kept = async ({ gateway, portico }: ReturnType<typeof openReader>, ids: readonly number[]) => {
  const before = gateway.calls.length;
  for (const id of ids) await read(portico, id);
  const found = gateway.calls.slice(before).map(isConditional);
  return ids.filter((_, index) => found[index]);
};

describe('the number of copies', () => {
  test('is as said, and those that were used last stay', async () => {
    const reader = openReader({ copies: keepCopies({ most: 2 }) });
    for (const id of [1, 2, 1, 3]) await read(reader.portico, id);
    expect(await kept(reader, [1, 3])).toEqual([1, 3]);
    expect(await kept(reader, [2])).toEqual([]); // and is kept now, in place of 1
    expect(await kept(reader, [3])).toEqual([3]);
    expect(await kept(reader, [1])).toEqual([]);
  });

  test('is 100 unless said, and none without `keepCopies`', async () => {
    const reader = openReader();
    for (let id = 0; id <= 100; id += 1) await read(reader.portico, id);
    expect(await kept(reader, [100, 1])).toEqual([100, 1]);
    expect(await kept(reader, [0])).toEqual([]);
    expect(await kept(openReader({ copies: undefined }), [1, 1])).toEqual([]);
  });
});

const fresh = (age: number) => ({ state: 'fresh', age });
const stale = (age: number, more: object = {}) => ({ state: 'stale', age, ...more });
const failed = { state: 'failed' };
const late = { code: 'upstream_timeout' };

/** Sections, the seconds that pass, the `Age` of the 304, and the sections then. */
const AGES: readonly (readonly [string, object, number, string | undefined, object])[] = [
  ['has grown by the time that has passed', { a: fresh(3) }, 20, '23', { a: fresh(23) }],
  ['is never more than that of the oldest', { a: fresh(3), b: fresh(9) }, 60, '12', { a: fresh(12), b: fresh(12) }],
  [
    'is not that of the oldest where it cannot be',
    { a: fresh(1), b: stale(300, late) },
    10,
    '310',
    { a: fresh(11), b: stale(310, late) },
  ],
  ['has grown where the gateway does not say it', { a: fresh(3) }, 20, undefined, { a: fresh(23) }],
  ['says of a stale section that it was read again', { a: stale(50) }, 20, '4', { a: fresh(4) }],
  ['says of a stale section that it was not', { a: stale(50) }, 20, '70', { a: stale(70) }],
  ['is none where there was none', { a: fresh(0), b: failed }, 20, '20', { a: fresh(20), b: failed }],
];

describe('the age of a section in a copy that a 304 confirms', () => {
  test.for(AGES)('%s', async ([, sections, seconds, age, expected]) => {
    const { gateway, clock, portico } = openStandIn({ copies: keepCopies() });
    const overview = json(200, { data: {}, errors: [], meta: { sections } }, { etag: ETAG });
    gateway.on('*', overview, json(304, '', { etag: ETAG, ...(age && { age }) }));
    await portico.getAccountOverview();
    clock.pass(seconds * 1000);
    expect((await portico.getAccountOverview()).meta.sections).toEqual(expected);
  });
});
