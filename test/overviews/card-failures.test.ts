import { describe, expect, test } from 'vitest';
import {
  byId,
  callsTo,
  CARD_LIST,
  cardIn,
  cardText,
  freshMeta,
  holdAll,
  legsOf,
  listOf,
  ONLY_ON_ERROR,
  openOverviews,
  SUBSCRIPTION,
  subscriptionWith,
  withCard,
} from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { exampleBody } from '../support/examples.ts';
import { bytes, close, hang, httpResponse, json, reply, reset, type Step } from '../support/scripted-upstream.ts';

const list = { path: CARD_LIST };
const subscription = { path: SUBSCRIPTION };
const card = byId('1071');

const FAILED = { code: 'upstream_bad_response', status: 502, section: 'payment_method', retryable: true };

/** What may become of the list but a refusal of the account, and the calls that it takes with those tried again. */
const LIST_FAILURES: readonly (readonly [name: string, step: Step, calls: number])[] = [
  ['400', json(400, { detail: 'No.', code: 'odd_account' }), 1],
  ['404', json(404, { detail: 'Not found.' }), 1],
  ['410', json(410, ''), 1],
  ['500', json(500, 'oops'), 1],
  ['503', json(503, ''), 3],
  ['504', json(504, ''), 3],
  ['a redirect', json(302, '', { Location: 'http://127.0.0.1:9/' }), 1],
  ['nothing', json(204, ''), 1],
  ['HTML', json(200, '<html>', { 'Content-Type': 'text/html' }), 1],
  ['no page', json(200, '{"detail":"moved"}'), 1],
  ['a close in mid body', reply(bytes(httpResponse(200, listOf(cardText('1071'))).subarray(0, -3)), close()), 1],
];

describe.each(withCard)('a card of %s', (path, overview) => {
  const legs = legsOf(overview);

  test.each(LIST_FAILURES)('is asked for by its id where the list is %s', async (_, step, calls) => {
    const world = await openOverviews();
    world.on(list, step);
    world.on(card, json(200, cardText('1071')));
    const { text, body } = await world.get(path);
    expect(cardIn(text)).toBe(cardText('1071'));
    expect(body).toMatchObject({ errors: [], meta: freshMeta(legs) });
    expect([callsTo(world, list), callsTo(world, card)]).toEqual([calls, 1]);
    expect(world.upstream.calls).toHaveLength(legs.length + calls);
  });

  test('is asked for by its id where the list does not come in time', async () => {
    const clock = manualClock();
    const world = await openOverviews({ UPSTREAM_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '3000' }, { clock });
    world.on(list, hang());
    world.on(card, json(200, cardText('1071')));
    const others = world.store.saves.next(legs.length - 1);
    const pending = world.get(path);
    await Promise.all([world.upstream.waitForCalls(legs.length), others]);
    clock.advance(1000);
    const { text, body } = await pending;
    expect(cardIn(text)).toBe(cardText('1071'));
    expect(body.errors).toEqual([]);
    expect(world.upstream.calls).toHaveLength(legs.length + 1);
  });

  test('is asked for no more when the time of the request is up', async () => {
    const clock = manualClock();
    const world = await openOverviews({ REQUEST_TIMEOUT_MS: '1000' }, { clock });
    world.on(list, hang());
    const pending = world.get(path);
    await world.upstream.waitForCalls(legs.length);
    await Promise.all(legs.filter(({ isCard }) => !isCard).map((leg) => world.get(leg.path)));
    clock.advance(1000);
    expect((await pending).body.errors).toMatchObject([{ section: 'payment_method', code: 'upstream_timeout' }]);
    // A call made behind the answer's back would arrive before this one.
    await world.get(SUBSCRIPTION, { headers: { 'Cache-Control': 'no-cache' } });
    expect([callsTo(world, card), world.upstream.calls.length]).toEqual([0, legs.length + 1]);
  });

  test('is not asked for where the upstream wants no calls of the account', async () => {
    const world = await openOverviews();
    world.on(list, json(429, '', { 'Retry-After': '7' }));
    const { body } = await world.get(path);
    expect(body.errors).toMatchObject([{ section: 'payment_method', code: 'rate_limited', retry_after: 7 }]);
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  const failures: readonly (readonly [name: string, ofList: Step, ofCard: Step, error: object])[] = [
    [
      'the list fails too',
      json(404, { detail: 'Not found.' }),
      json(503, '', { 'Retry-After': '9' }),
      { code: 'upstream_unavailable', status: 503, retryable: true, retry_after: 9 },
    ],
    [
      'there is no such card',
      json(500, 'oops'),
      json(404, { detail: 'Not found.' }),
      { code: 'not_found', status: 404, retryable: false },
    ],
    ['it is not in the list', json(200, listOf()), json(500, 'oops'), FAILED],
    [
      'the connection breaks',
      json(200, listOf(cardText('8'))),
      reset(),
      { code: 'upstream_unreachable', status: 502, retryable: true },
    ],
  ];

  test.each(failures)('fails with the error of its own call: %s', async (_, ofList, ofCard, error) => {
    const world = await openOverviews();
    world.on(list, ofList);
    world.on(card, ofCard);
    const { status, headers, body } = await world.get(path);
    expect([status, headers['cache-control'], headers['etag']]).toEqual([200, 'no-store', undefined]);
    expect(Object.keys(body.data)).toEqual(Object.keys(overview.sections));
    expect(body.data).toMatchObject({ payment_method: null, subscription: { id: 5 } });
    expect(body.errors).toEqual([{ section: 'payment_method', ...error, detail: expect.any(String) as string }]);
    expect(body.meta).toMatchObject({ complete: false, sections: { payment_method: { state: 'failed' } } });
  });

  test.each([401, 403])('refused with %i by its id fails the whole and abandons the others', async (status) => {
    const world = await openOverviews();
    const slow = legs.filter(({ isCard, required }) => !isCard && !required);
    holdAll(world, slow);
    world.on(list, json(200, listOf()));
    world.on(card, json(status, { detail: 'No.', code: 'api_key_not_allowed' }));
    expect(await world.get(path)).toMatchObject({ status, json: { detail: 'No.', instance: path } });
    for (const { path: at } of slow) await world.upstream.disconnected(world.upstream.callsTo(`GET ${at}`)[0]!);
    expect(world.upstream.calls).toHaveLength(legs.length + 1);
  });

  test.each(['"abc"', '"../8"', '""', '-1', '7.5', '7e0', 'true', '{"id":7}', '[7]', '12345678901234567890'])(
    'is a bad response where its id is %s, and nothing is asked for by it',
    async (id) => {
      const world = await openOverviews();
      world.on(subscription, json(200, subscriptionWith(id)));
      const { status, body } = await world.get(path);
      expect(status).toBe(200);
      expect(body.data['payment_method']).toBeNull();
      expect(body.errors).toMatchObject([FAILED]);
      expect(world.upstream.calls.length).toBeLessThanOrEqual(legs.length);
    },
  );

  test('does not outlast the id that was unusable', async () => {
    const world = await openOverviews();
    world.on(subscription, json(200, subscriptionWith('"abc"')));
    await world.get(path);
    world.on(subscription, json(200, exampleBody('getSubscription')));
    world.on(card, json(200, cardText('1071')));
    const { body } = await world.get(path, { headers: { 'Cache-Control': 'no-cache' } });
    expect(body).toMatchObject({ data: { payment_method: { id: 1071 } }, errors: [] });
  });

  test.each([
    ['the list', list, listOf(cardText('1071'))],
    ['the card', card, cardText('1071')],
  ])('is an older copy of %s where there is one', async (_, held, text) => {
    const world = await openOverviews(ONLY_ON_ERROR);
    world.on(held, json(200, text));
    await world.get(held.path);
    for (const leg of [list, card]) world.on(leg, json(503));
    const { text: answer, body } = await world.get(path);
    expect(body).toMatchObject({
      errors: [],
      meta: { complete: true, sections: { payment_method: { state: 'stale' } } },
    });
    expect(cardIn(answer)).toBe(cardText('1071'));
  });
});
