import { describe, expect, test } from 'vitest';
import { isHit } from '../cache/helpers.ts';
import { bodyOf, callOf, pathOf, tokenOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const LIST = 'listTransactions';

const statesOf = async ({ ask }: World) =>
  Promise.all(cachedIds.map(async (id) => (await ask(id)).headers['cache-status']));

/** A world whose account has a copy of everything. */
const filledWorld = async (env: Readonly<Record<string, string>> = {}) => {
  const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '0', ...env });
  world.answerAll();
  for (const id of cachedIds) await world.ask(id);
  return world;
};

const expectAllHeld = async (world: World) => {
  expect(await statesOf(world)).toEqual(cachedIds.map(() => isHit));
};

describe('the copies of an account are still there', () => {
  test('after hundreds of large pages of another', async () => {
    const world = await filledWorld({ CACHE_MAX_BYTES: '1048576' });
    const hog = secret();
    const large = { count: 1, next: null, previous: null, results: [], padding: 'x'.repeat(50_000) };
    world.upstream.on((to) => tokenOf(to) === hog, json(200, JSON.stringify(large)));
    for (let page = 1; page <= 200; page++) await world.ask(LIST, { path: `${pathOf(LIST)}?page=${page}`, token: hog });
    await expectAllHeld(world);
  });

  test('after thousands of credentials that the upstream refuses', async () => {
    const world = await filledWorld({ CACHE_MAX_BYTES: '524288' });
    world.upstream.on((to) => tokenOf(to) !== world.token, json(401, ''));
    for (let sent = 0; sent < 3_000; sent++) await world.ask('getSubscription', { token: secret() });
    await expectAllHeld(world);
  });

  test.each([
    ['a 404 with a query of 1,100 characters', 1, 1_100],
    ['60 of them with short ones', 60, 10],
    ['500 of them with long ones', 500, 1_100],
  ])('after %s of its own', async (_, count, length) => {
    const world = await filledWorld();
    world.upstream.on((to) => to.target.includes('filler'), json(404, ''));
    for (let sent = 0; sent < count; sent++) {
      await world.ask(LIST, { path: `${pathOf(LIST)}?filler=${'x'.repeat(length)}${sent}` });
    }
    await expectAllHeld(world);
  });

  test('after writes to fifty other items', async () => {
    const world = await filledWorld();
    const ids = writeIds.filter((id) => id === 'refreshSubuser');
    expect(ids).toHaveLength(1);
    world.upstream.on(callOf('refreshSubuser'), json(200, bodyOf('refreshSubuser', 1)));
    const path = pathOf('refreshSubuser');
    for (let id = 1_000; id < 1_050; id++)
      await world.ask('refreshSubuser', { path: path.replace(/\/\d+\//, `/${id}/`) });
    await expectAllHeld(world);
  });
});
