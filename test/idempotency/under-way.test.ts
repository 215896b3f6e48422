import { describe, expect, test, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import {
  DAY_SECONDS,
  differentFrom,
  gist,
  good,
  goodGist,
  IN_PROGRESS,
  openShop,
  reprinted,
  REUSED,
  type Shop,
  UNKNOWN,
} from './helpers.ts';
import { openSocket } from '../support/raw-client.ts';
import { barrier, type Barrier, hold, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { postIds } from '../support/table.ts';
import { exampleRequest } from '../support/examples.ts';
import { type Asking } from '../support/world.ts';

/** One request that the upstream has and does not answer until the gate opens. */
const begin = async (shop: Shop, id: OperationId, { step = good(id, 1), ...asking }: Asking & { step?: Step } = {}) => {
  const gate = barrier();
  shop.script(id, reply(hold(gate), step));
  const answer = shop.ask(id, asking);
  // One who leaves gets none.
  answer.catch(() => undefined);
  await gate.reached;
  return { gate, answer };
};

/** The gateway has logged the end of so many requests. */
const over = ({ gateway }: Shop, requests: number) =>
  vi.waitFor(() => expect(gateway.lines.filter(({ msg }) => msg === 'request')).toHaveLength(requests), {
    interval: 1,
  });

describe.each(postIds)('while %s with a key is under way', (id) => {
  test('the same again is refused, and gets its answer as soon as there is one', async () => {
    const shop = await openShop();
    const { gate, answer } = await begin(shop, id, { key: shop.key });
    for (let time = 0; time < 2; time += 1) expect(gist(await shop.keyed(id))).toBe(IN_PROGRESS);
    expect(gist(await shop.keyed(id, differentFrom(id)))).toBe(REUSED);
    gate.release();
    expect(gist(await answer)).toBe(goodGist(id, 1));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    expect(shop.upstream.calls).toHaveLength(1);
  });

  test('its day has begun already', async () => {
    const shop = await openShop();
    const { gate, answer } = await begin(shop, id, { key: shop.key });
    shop.advance(4);
    gate.release();
    await answer;
    shop.advance(DAY_SECONDS - 5);
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    shop.advance(1);
    shop.script(id, good(id, 2));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 2));
  });

  test('of ten at the same moment one is sent', async () => {
    const shop = await openShop();
    const gate = barrier();
    shop.script(id, reply(hold(gate), good(id, 1)));
    const answers = Array.from({ length: 10 }, async () => gist(await shop.keyed(id)));
    await gate.reached;
    await over(shop, 9);
    gate.release();
    const seen = await Promise.all(answers);
    expect(seen.toSorted()).toEqual([goodGist(id, 1), ...Array<string>(9).fill(IN_PROGRESS)].toSorted());
  });

  test('its client may leave: it is followed to its end, and the key has its answer', async () => {
    const shop = await openShop();
    const client = new AbortController();
    const { gate, answer } = await begin(shop, id, { key: shop.key, signal: client.signal });
    client.abort();
    await expect(answer).rejects.toThrow();
    expect(gist(await shop.keyed(id))).toBe(IN_PROGRESS);
    gate.release();
    await over(shop, 2);
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 1, { isReplay: true }));
    expect(shop.upstream.calls).toHaveLength(1);
  });

  test('its client may leave, and the key knows that nobody knows', async () => {
    const shop = await openShop();
    const client = new AbortController();
    const { gate } = await begin(shop, id, { key: shop.key, signal: client.signal, step: reset() });
    client.abort();
    gate.release();
    await over(shop, 1);
    expect(gist(await shop.keyed(id))).toBe(UNKNOWN);
  });

  test('its client may leave, and the key is free where the upstream refuses', async () => {
    const shop = await openShop();
    const client = new AbortController();
    const { gate } = await begin(shop, id, { key: shop.key, signal: client.signal, step: json(400) });
    client.abort();
    gate.release();
    await over(shop, 1);
    shop.script(id, good(id, 2));
    expect(gist(await shop.keyed(id))).toBe(goodGist(id, 2));
  });
});

test.each(['half of its body', 'nothing of its body'])(
  'a client that leaves after %s has used no key',
  async (part) => {
    const shop = await openShop();
    const socket = await openSocket(shop.gateway.port);
    const head = `POST ${exampleRequest('purchasePlan').path} HTTP/1.1\r\nHost: portico.test\r\nAuthorization: Token ${shop.token}`;
    const rest = `Idempotency-Key: ${shop.key}\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n`;
    await socket.write(`${head}\r\n${rest}${part.startsWith('half') ? '{"term":"m' : ''}`);
    socket.reset();
    await over(shop, 1);
    shop.script('purchasePlan', good('purchasePlan', 1));
    expect(gist(await shop.keyed('purchasePlan'))).toBe(goodGist('purchasePlan', 1));
  },
);

describe('a purchase without a key', () => {
  const ID = 'purchasePlan';

  test.each([
    ['is equal', exampleRequest(ID).body],
    ['is equal but for its print', reprinted(exampleRequest(ID).body)],
  ])('is refused while one that %s is under way, and goes when that is over', async (_, body) => {
    const shop = await openShop();
    const { gate, answer } = await begin(shop, ID);
    expect(gist(await shop.ask(ID, { body }))).toBe(IN_PROGRESS);
    expect(shop.upstream.calls).toHaveLength(1);
    gate.release();
    expect(gist(await answer)).toBe(goodGist(ID, 1));
    shop.script(ID, good(ID, 2));
    expect(gist(await shop.ask(ID, { body }))).toBe(goodGist(ID, 2));
  });

  test.each<readonly [string, (shop: Shop) => Asking]>([
    ['of another body', () => differentFrom(ID)],
    ['of another account', () => ({ token: secret() })],
  ])('does not stand in the way of one %s', async (_, asking) => {
    const shop = await openShop();
    const [one, other] = [await begin(shop, ID), await begin(shop, ID, { step: good(ID, 2), ...asking(shop) })];
    other.gate.release();
    expect(gist(await other.answer)).toBe(goodGist(ID, 2));
    one.gate.release();
    expect(gist(await one.answer)).toBe(goodGist(ID, 1));
  });

  /** Of two equal purchases the first and the second, each with a key or without. */
  const PAIRS: readonly (readonly [string, (shop: Shop) => Asking, (shop: Shop) => Asking])[] = [
    ['neither with a key', () => ({}), () => ({})],
    ['the first with a key', ({ key }) => ({ key }), () => ({})],
    ['the second with a key', () => ({}), ({ key }) => ({ key })],
  ];

  describe.each(PAIRS)('is one of two equal ones, %s:', (_, first, second) => {
    test('the second is refused while the first is under way, and may be tried again soon', async () => {
      const shop = await openShop();
      const { gate, answer } = await begin(shop, ID, first(shop));
      const refused = await shop.ask(ID, second(shop));
      expect(gist(refused)).toBe(IN_PROGRESS);
      expect([refused.headers['retry-after'], refused.json]).toMatchObject(['1', { retryable: true }]);
      gate.release();
      expect(gist(await answer)).toBe(goodGist(ID, 1));
      shop.script(ID, good(ID, 2));
      expect(gist(await shop.ask(ID, second(shop)))).toBe(goodGist(ID, 2));
    });

    test.each([
      ['an error', json(500), '502 upstream_bad_response unknown'],
      ['no answer', reset(), '502 upstream_unreachable unknown'],
    ])('the second is refused for a minute when the first got %s, and may then go', async (__, step, seen) => {
      const shop = await openShop({ REQUEST_TIMEOUT_MS: '1000' });
      shop.script(ID, step);
      expect(gist(await shop.ask(ID, first(shop)))).toBe(seen);
      for (const seconds of [0, 59]) {
        shop.advance(seconds);
        expect(gist(await shop.ask(ID, second(shop)))).toBe(UNKNOWN);
      }
      expect(shop.upstream.calls).toHaveLength(1);
      shop.advance(2);
      shop.script(ID, good(ID, 2));
      expect(gist(await shop.ask(ID, second(shop)))).toBe(goodGist(ID, 2));
    });

    test('the second goes when the first was refused', async () => {
      const shop = await openShop();
      shop.script(ID, json(400), good(ID, 2));
      expect(gist(await shop.ask(ID, first(shop)))).toBe('400 bad_request');
      expect(gist(await shop.ask(ID, second(shop)))).toBe(goodGist(ID, 2));
    });
  });

  test('goes beside an equal one where both have a key of their own', async () => {
    const shop = await openShop();
    const one = await begin(shop, ID, { key: 'one' });
    const other = await begin(shop, ID, { key: 'other', step: good(ID, 2) });
    for (const { gate } of [other, one]) gate.release();
    expect([gist(await one.answer), gist(await other.answer)]).toEqual([goodGist(ID, 1), goodGist(ID, 2)]);
  });

  test.each([
    ['a key', ({ key }: Shop) => ({ key }), goodGist(ID, 1, { isReplay: true })],
    ['none', () => ({}), IN_PROGRESS],
  ])('is the same with another recaptcha, with %s', async (_, asking: (shop: Shop) => Asking, seen) => {
    const shop = await openShop();
    const { body = '{}' } = exampleRequest(ID);
    const bodyWith = (recaptcha: string) =>
      JSON.stringify({ ...(JSON.parse(body) as object), x_other: { recaptcha: 'compared' }, recaptcha });
    const { gate, answer } = await begin(shop, ID, { body: bodyWith('one'), ...asking(shop) });
    if (seen !== IN_PROGRESS) gate.release();
    if (seen !== IN_PROGRESS) await answer;
    expect(gist(await shop.ask(ID, { body: bodyWith('two'), ...asking(shop) }))).toBe(seen);
    gate.release();
    await answer;
  });

  test('is refused while an equal one goes on that its client has left', async () => {
    const shop = await openShop();
    const client = new AbortController();
    const { gate } = await begin(shop, ID, { signal: client.signal });
    client.abort();
    expect(gist(await shop.ask(ID))).toBe(IN_PROGRESS);
    gate.release();
    await over(shop, 2);
    shop.script(ID, good(ID, 2));
    expect(gist(await shop.ask(ID))).toBe(goodGist(ID, 2));
  });

  test('is refused beside four equal ones at the same moment', async () => {
    const shop = await openShop();
    const gate: Barrier = barrier();
    shop.script(ID, reply(hold(gate), good(ID, 1)));
    const answers = Array.from({ length: 5 }, async () => gist(await shop.ask(ID)));
    await gate.reached;
    await over(shop, 4);
    gate.release();
    expect((await Promise.all(answers)).filter((seen) => seen !== IN_PROGRESS)).toEqual([goodGist(ID, 1)]);
  });
});

test.each(postIds.filter((id) => id !== 'purchasePlan'))('two equal %s without a key both go', async (id) => {
  const shop = await openShop();
  const [one, other] = [await begin(shop, id), await begin(shop, id, { step: good(id, 2) })];
  one.gate.release();
  other.gate.release();
  expect([gist(await one.answer), gist(await other.answer)]).toEqual([goodGist(id, 1), goodGist(id, 2)]);
});
