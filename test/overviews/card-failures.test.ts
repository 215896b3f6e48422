import { describe, expect, test } from 'vitest';
import { accountOverview } from '../../src/gateway/overviews/account.ts';
import {
  byId,
  callsTo,
  CARD_LIST,
  cardIn,
  cardText,
  listOf,
  ONLY_ON_ERROR,
  openOverviews,
  SUBSCRIPTION,
  subscriptionWith,
  type OverviewWorld,
} from './helpers.ts';
import { exampleBody } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';

const list = { path: CARD_LIST };
const subscription = { path: SUBSCRIPTION };

const path = accountOverview.path;

const FAILED = { code: 'upstream_bad_response', status: 502, section: 'payment_method', retryable: true };

describe('a card that cannot be had', () => {
  const failures = [
    ['the list fails', (world: OverviewWorld) => world.on(list, json(500, 'oops'))],
    [
      'it is not in the list and its own call fails',
      (world: OverviewWorld) => {
        world.on(list, json(200, listOf()));
        world.on(byId('7'), json(500, 'oops'));
      },
    ],
  ] as const;

  test.each(failures)('leaves the rest as it is: %s', async (_, fail) => {
    const world = await openOverviews();
    fail(world);
    const { status, headers, body } = await world.get(path);
    expect({ status, cacheControl: headers['cache-control'], etag: headers['etag'] }).toEqual({
      status: 200,
      cacheControl: 'no-store',
      etag: undefined,
    });
    expect(Object.keys(body.data)).toEqual(Object.keys(accountOverview.sections));
    expect(body.data).toMatchObject({ payment_method: null, subscription: { id: 5 }, referral_config: { id: 9 } });
    expect(body.errors).toEqual([{ ...FAILED, detail: expect.any(String) as string }]);
    expect(body.meta).toMatchObject({ complete: false, sections: { payment_method: { state: 'failed' } } });
  });

  test('is reported as not found when the upstream has no such card', async () => {
    const world = await openOverviews();
    world.on(list, json(200, listOf()));
    world.on(byId('7'), json(404, { detail: 'Not found.' }));
    const { status, body } = await world.get(path);
    expect(status).toBe(200);
    expect(body.errors).toMatchObject([{ section: 'payment_method', code: 'not_found', status: 404 }]);
    expect(body.meta.sections['payment_method']).toEqual({ state: 'failed' });
  });

  test('is asked for once when it is the one seen last and it is gone', async () => {
    const world = await openOverviews();
    await world.get(SUBSCRIPTION);
    world.on(byId('7'), json(404, { detail: 'Not found.' }));
    const { body } = await world.get(path);
    expect(body.errors).toMatchObject([{ section: 'payment_method', code: 'not_found', status: 404 }]);
    expect(callsTo(world, byId('7'))).toBe(1);
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
      expect(world.upstream.calls.length).toBeLessThanOrEqual(4);
    },
  );

  test('does not outlast the id that was unusable', async () => {
    const world = await openOverviews();
    world.on(subscription, json(200, subscriptionWith('"abc"')));
    await world.get(path);
    world.on(subscription, json(200, exampleBody('getSubscription')));
    world.on(byId('7'), json(200, cardText('7')));
    const { body } = await world.get(path, { headers: { 'Cache-Control': 'no-cache' } });
    expect(body).toMatchObject({ data: { payment_method: { id: 7 } }, errors: [] });
  });

  test.each([
    ['the list', list, listOf(cardText('7'))],
    ['the card', byId('7'), cardText('7')],
  ])('is an older copy of %s where there is one', async (_, held, text) => {
    const world = await openOverviews(ONLY_ON_ERROR);
    world.on(held, json(200, text));
    await world.get(held.path);
    for (const leg of [list, byId('7')]) world.on(leg, json(503));
    const { text: answer, body } = await world.get(path);
    expect(body).toMatchObject({
      errors: [],
      meta: { complete: true, sections: { payment_method: { state: 'stale' } } },
    });
    expect(cardIn(answer)).toBe(cardText('7'));
  });
});
