import { describe, expect, test } from 'vitest';
import { differentFrom, gist, good, goodGist, openShop, reprinted, REUSED } from './helpers.ts';
import { json } from '../support/scripted-upstream.ts';
import { bodiedIds, bodilessIds, isSocial, itemIds, postIds } from '../support/table.ts';
import { exampleRequest } from '../support/examples.ts';

describe.each(postIds)('%s with a key', (id) => {
  test('is sent once; the same again gets the first answer, and says so', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1));
    const first = await shop.keyed(id);
    expect(gist(first)).toBe(goodGist(id, 1));
    expect(first.headers['cache-status']).toBe('portico; fwd=method');
    for (let time = 0; time < 3; time += 1) {
      const again = await shop.keyed(id);
      expect(gist(again)).toBe(goodGist(id, 1, { isReplay: true }));
      expect(again.headers['content-type']).toBe(first.headers['content-type']);
      expect(again.headers).not.toHaveProperty('cache-status');
    }
    expect(shop.upstream.calls).toHaveLength(1);
  });

  test.each([
    ['a 204', json(204), '204'],
    ['a 205', json(205, '', { 'content-length': '0' }), '205'],
    ['a 202 with numbers as they were written', json(202, '{"id":9007199254740993123,"amount":25.0}'), undefined],
  ])('gets %s again', async (_, step, seen = '202 {"id":9007199254740993123,"amount":25.0}') => {
    const shop = await openShop();
    shop.script(id, step);
    expect(gist(await shop.keyed(id))).toBe(seen);
    const again = await shop.keyed(id);
    expect(gist(again)).toBe(`${seen} replayed=true`);
    if (seen.length === 3) expect(again.headers).not.toHaveProperty('content-type');
  });

  test('goes upstream with it', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1));
    await shop.keyed(id);
    expect(shop.upstream.calls[0]?.headers['idempotency-key']).toBe(shop.key);
  });

  test('is sent again with another key, and each key keeps its own answer', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1), good(id, 2));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1));
    expect(gist(await shop.keyed(id, { key: `${shop.key}-b` }))).toBe(goodGist(id, 2));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    expect(gist(await shop.keyed(id, { key: `${shop.key}-b` }))).toBe(goodGist(id, 2, { isReplay: true }));
  });

  test('is refused where the key was for another request of the operation, which keeps its answer', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1));
    await shop.keyed(id);
    expect(gist(await shop.keyed(id, differentFrom(id)))).toBe(REUSED);
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    expect(shop.upstream.calls).toHaveLength(1);
  });

  test('is refused where the key was for another operation', async () => {
    const shop = await openShop();
    for (const other of postIds.filter((one) => one !== id)) {
      const key = `${shop.key}-${other}`;
      shop.script(other, good(other, 1));
      expect(gist(await shop.keyed(other, { key }))).toBe(goodGist(other, 1));
      // Those without a credential have keys of their own: so it is sent.
      shop.script(id, good(id, 2));
      const expected = isSocial(other) === isSocial(id) ? REUSED : goodGist(id, 2);
      expect(gist(await shop.keyed(id, { key })), other).toBe(expected);
    }
  });

  test('is sent each time without one', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1), good(id, 2));
    expect(gist(await shop.ask(id))).toBe(goodGist(id, 1));
    expect(gist(await shop.ask(id))).toBe(goodGist(id, 2));
    expect(shop.upstream.calls[0]?.headers).not.toHaveProperty('idempotency-key');
  });
});

/** Operations to which one body means something. */
test.each([
  ['purchasePlan', 'createApiKey', '{"label":"server"}'],
  ['createApiKey', 'startIdVerification', '{}'],
  ['startIdVerification', 'purchasePlan', '{}'],
  ['registerSocial', 'loginSocial', String(exampleRequest('registerSocial').body)],
] as const)('the key of %s is refused for %s with the very same body', async (id, other, body) => {
  const shop = await openShop();
  shop.script(id, good(id, 1));
  expect(gist(await shop.keyed(id, { body }))).toBe(goodGist(id, 1));
  expect(gist(await shop.keyed(other, { body }))).toBe(REUSED);
});

describe.each(bodiedIds)('%s with a key', (id) => {
  test('is the same request with its body printed otherwise', async () => {
    const shop = await openShop();
    shop.script(id, good(id, 1));
    // Numbers as they are printed here: 25 is not what 25.0 is.
    const body = JSON.stringify(JSON.parse(String(exampleRequest(id).body)));
    await shop.keyed(id, { body });
    expect(gist(await shop.keyed(id, { body: reprinted(body) }))).toBe(goodGist(id, 1, { isReplay: true }));
  });

  test('is sent as the client wrote it', async () => {
    const shop = await openShop();
    const body = reprinted(exampleRequest(id).body);
    shop.script(id, good(id, 1));
    await shop.keyed(id, { body });
    expect(shop.upstream.calls[0]?.body).toBe(body);
  });
});

describe.each(bodilessIds)('%s with a key', (id) => {
  const bodies = [undefined, '{"a":1}', '{"a":2}', '{"a":', 'plain text', Buffer.from([0xe9]), Buffer.from([0xea])];

  test('is another request with another body, though none goes upstream', async () => {
    const shop = await openShop();
    for (const [at, body] of bodies.entries()) {
      const key = `${shop.key}-${at}`;
      shop.script(id, good(id, at));
      expect(gist(await shop.keyed(id, { key, body }))).toBe(goodGist(id, at));
      for (const other of bodies)
        expect(gist(await shop.keyed(id, { key, body: other }))).toBe(
          other === body ? goodGist(id, at, { isReplay: true }) : REUSED,
        );
    }
    expect(shop.upstream.calls.map(({ body, headers }) => [body, headers['content-type']])).toEqual(
      bodies.map(() => ['', undefined]),
    );
  });
});

describe.each(itemIds)('%s with a key', (id) => {
  test('is another request for another id, whichever of them was the first', async () => {
    const shop = await openShop();
    const [one, other] = [exampleRequest(id), differentFrom(id)];
    shop.upstream.once(`POST ${other.path}`, good(id, 1));
    expect(gist(await shop.keyed(id, other))).toBe(goodGist(id, 1));
    expect(gist(await shop.keyed(id, one))).toBe(REUSED);
    expect(gist(await shop.keyed(id, other))).toBe(goodGist(id, 1, { isReplay: true }));
  });
});

test('numbers that only look alike to a parser make another request', async () => {
  const shop = await openShop();
  const prices = ['25', '25.0', '2.5e1', '9007199254740993', '9007199254740992', '-0', '0'];
  for (const first of prices) {
    const key = `price-${first}`;
    shop.script('purchasePlan', good('purchasePlan', 1));
    expect(gist(await shop.keyed('purchasePlan', { key, body: `{"x_price":${first}}` }))).toMatch(/^201 /);
    for (const price of prices) {
      const answer = await shop.keyed('purchasePlan', { key, body: `{"x_price":${price}}` });
      if (price === first) expect(gist(answer)).toMatch(/ replayed=true$/);
      else expect(gist(answer), `${price} after ${first}`).toBe(REUSED);
    }
  }
});
