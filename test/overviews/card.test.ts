import { describe, expect, test } from 'vitest';
import { accountOverview } from '../support/account-api.ts';
import {
  byId,
  callsTo,
  CARD,
  CARD_LIST,
  cardIn,
  cardText,
  freshMeta,
  legsOf,
  listOf,
  holdAll,
  ONLY_ON_ERROR,
  policyEnv,
  openOverviews,
  SUBSCRIPTION,
  subscriptionWith,
  withCard,
} from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';

const list = { path: CARD_LIST };
const subscription = { path: SUBSCRIPTION };

const path = accountOverview.path;

describe.each(withCard)('the card in %s', (overviewPath, overview) => {
  const legs = legsOf(overview);

  test('is the one of the list that the subscription names, in one call a section', async () => {
    const world = await openOverviews();
    const decoys = [
      cardText('10710'),
      '{"type":"Other","nested":{"id":1071},"text":"\\"id\\":1071","id":6}',
      cardText('17'),
    ];
    world.on(list, json(200, listOf(...decoys, cardText('1071'), cardText('8'))));
    const { text } = await world.get(overviewPath);
    expect(cardIn(text)).toBe(cardText('1071'));
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('is asked for by its id, in one call more, when the list does not hold it', async () => {
    const world = await openOverviews();
    world.on(list, json(200, listOf(cardText('8'))));
    world.on(byId('1071'), json(200, cardText('1071')));
    const { text, body } = await world.get(overviewPath);
    expect(cardIn(text)).toBe(cardText('1071'));
    expect(body.meta).toEqual(freshMeta(legs));
    expect([callsTo(world, byId('1071')), world.upstream.calls.length]).toEqual([1, legs.length + 1]);
    await world.get(overviewPath);
    expect(world.upstream.calls).toHaveLength(legs.length + 1);
  });

  test('is looked for in the list at the same time as the subscription is read', async () => {
    const world = await openOverviews();
    const gate = holdAll(world, legs);
    const pending = world.get(overviewPath);
    await world.upstream.waitForCalls(legs.length);
    gate.release();
    expect(cardIn((await pending).text)).toBe(cardText('1071'));
    expect([callsTo(world, list), world.upstream.calls.length]).toEqual([1, legs.length]);
  });

  test.each([400, 401, 403, 404, 410, 429, 500, 503])(
    'is not guessed from an earlier subscription: its card would be answered with %i',
    async (status) => {
      const world = await openOverviews(ONLY_ON_ERROR);
      await world.get(SUBSCRIPTION);
      world.on(subscription, json(200, subscriptionWith('8')));
      world.on(list, json(200, listOf(cardText('8'))));
      world.on(byId('1071'), json(status, { detail: 'No.' }));
      const { text, body } = await world.get(overviewPath);
      expect(cardIn(text)).toBe(cardText('8'));
      expect(body.meta).toEqual(freshMeta(legs));
      expect([callsTo(world, byId('1071')), world.upstream.calls.length]).toEqual([0, 1 + legs.length]);
    },
  );

  test('is the new one although the list that is held is from before', async () => {
    const world = await openOverviews();
    await world.get(CARD_LIST);
    world.on(subscription, json(200, subscriptionWith('8')));
    world.on(byId('8'), json(200, cardText('8')));
    const { text } = await world.get(overviewPath);
    expect(cardIn(text)).toBe(cardText('8'));
    expect([callsTo(world, list), world.upstream.calls.length]).toEqual([1, legs.length + 1]);
  });

  test.each(['9007199254740993123', '9223372036854775807', '0'])('may have the id %s', async (id) => {
    const world = await openOverviews();
    world.on(subscription, json(200, subscriptionWith(id)));
    world.on(list, json(200, listOf(cardText('9007199254740993124'), cardText('9223372036854775808'))));
    world.on(byId(id), json(200, cardText(id)));
    expect(cardIn((await world.get(overviewPath)).text)).toBe(cardText(id));
    world.on(list, json(200, listOf(cardText('9007199254740993124'), cardText(id))));
    const again = await world.get(overviewPath, { headers: { 'Cache-Control': 'no-cache' } });
    expect(cardIn(again.text)).toBe(cardText(id));
  });
});

describe('a subscription without a card', () => {
  const noCard = json(200, subscriptionWith('null'));
  const NOT_APPLICABLE = {
    data: { payment_method: null },
    errors: [],
    meta: { complete: true, sections: { payment_method: { state: 'not_applicable' } } },
  };

  test('has null there, and is complete', async () => {
    const world = await openOverviews();
    world.on(subscription, noCard);
    const { status, body, headers } = await world.get(path);
    expect({ status, body }).toMatchObject({ status: 200, body: NOT_APPLICABLE });
    expect(headers).toMatchObject({ etag: expect.any(String) as string, 'cache-control': 'private, no-cache' });
    expect(world.upstream.calls.length).toBeLessThanOrEqual(4);
    const again = await world.get(path, { headers: { 'If-None-Match': headers['etag']! } });
    expect(again.status).toBe(304);
  });

  test.each([
    ['is answered', json(200, listOf())],
    ['is given up', hold(barrier())],
  ])('costs nothing the second time when the list %s', async (_, step) => {
    const world = await openOverviews();
    world.on(subscription, noCard);
    world.on(list, step);
    await world.get(path);
    const before = world.upstream.calls.length;
    const { headers, body } = await world.get(path);
    expect(body).toMatchObject(NOT_APPLICABLE);
    expect(headers['cache-status']).toMatch(/^portico; hit; /);
    expect(world.gateway.lines.filter(({ msg }) => msg === 'request').map(({ upstream_calls: n }) => n)).toEqual([
      4, 0,
    ]);
    // A call made behind the answer's back would arrive before this one.
    await world.get('/api/v2/payment/transaction/');
    expect(world.upstream.calls.slice(before).map(({ target }) => target)).toEqual(['/api/v2/payment/transaction/']);
  });

  test('that has one now has it asked for by its id, for nobody asked for the list', async () => {
    const world = await openOverviews(ONLY_ON_ERROR);
    world.on(subscription, noCard);
    await world.get(SUBSCRIPTION);
    world.on(subscription, json(200, subscriptionWith('8')));
    world.on(byId('8'), json(200, cardText('8')));
    const { text } = await world.get(path);
    expect(cardIn(text)).toBe(cardText('8'));
    expect([callsTo(world, list), world.upstream.calls.length]).toEqual([0, 1 + 4]);
  });

  test('does not wait for the list, which is given up', async () => {
    const world = await openOverviews();
    world.on(subscription, noCard);
    world.on(list, hold(barrier()));
    const { body } = await world.get(path);
    expect(body).toMatchObject(NOT_APPLICABLE);
    for (const listCall of world.upstream.callsTo(`GET ${CARD_LIST}`)) await world.upstream.disconnected(listCall);
  });

  test.each([500, 503, 404, 429])('has no error when the list is answered with %i', async (status) => {
    const world = await openOverviews();
    const gate = barrier();
    world.on(list, json(status, '{"detail":"no"}'));
    world.on(subscription, reply(hold(gate), noCard));
    const pending = world.get(path);
    await world.get(CARD_LIST); // has failed by now
    gate.release();
    const { body } = await pending;
    expect(body).toMatchObject(NOT_APPLICABLE);
  });
});

describe('?sections=payment_method', () => {
  const only = `${path}?sections=payment_method`;

  test('reads the subscription without showing it', async () => {
    const world = await openOverviews();
    const { text, body } = await world.get(only);
    expect(text.startsWith(`{"data":{"payment_method":${cardText('1071')}},"errors":[],"meta":`)).toBe(true);
    expect(Object.keys(body.meta.sections)).toEqual(['payment_method']);
    expect(world.upstream.calls.map(({ path: at }) => at).toSorted()).toEqual([CARD_LIST, SUBSCRIPTION]);
  });

  test('has the card skipped when the subscription fails', async () => {
    const world = await openOverviews();
    world.on(subscription, json(503, '', { 'Retry-After': '7' }));
    const { status, headers, body } = await world.get(only);
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    expect(body).toMatchObject({
      data: { payment_method: null },
      errors: [{ section: 'payment_method', code: 'upstream_unavailable', status: 503, retryable: true }],
      meta: { complete: false, sections: { payment_method: { state: 'skipped' } } },
    });
  });

  test('says in Cache-Status what the subscription cost, though it is not shown', async () => {
    const world = await openOverviews();
    await world.get(CARD_LIST);
    const first = await world.get(only);
    const second = await world.get(only);
    expect(world.upstream.calls).toHaveLength(2);
    expect(first.headers['cache-status']).toBe('portico; fwd=miss');
    expect(second.headers['cache-status']).toMatch(/^portico; hit; /);
  });

  test.each([401, 403])('fails as a whole when the subscription is refused with %i', async (status) => {
    const world = await openOverviews();
    world.on(subscription, json(status, { detail: 'no' }));
    world.on(list, hold(barrier()));
    expect((await world.get(only)).status).toBe(status);
  });
});

test('a card of a stale list is stale, and as old as the list', async () => {
  const clock = manualClock();
  const world = await openOverviews(policyEnv({ fresh: 10, stale: 300, on_error: 0 }), { clock });
  await world.get(CARD_LIST);
  clock.advance(20_000);
  const { body } = await world.get(path);
  expect(body.meta.sections['payment_method']).toEqual({ state: 'stale', age: 20 });
  expect(body.meta.sections['subscription']).toEqual({ state: 'fresh', age: 0 });
  await world.upstream.waitForCalls(5); // the list again, behind the answer
  expect(callsTo(world, { path: CARD })).toBe(0);
});
