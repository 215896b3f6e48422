import { afterEach, beforeEach, expect, test } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { World } from './world.ts';

const UNLIMITED = { RATE_LIMIT_PER_MINUTE: '0' };

let world: World;
/** What the objects are asked, in order. */
let asked: string[];
let token: string;

beforeEach(async () => {
  world = new World(await startUpstream());
  asked = [];
  token = secret();
  world.before = async (_, method) => void asked.push(method);
});

afterEach(() => world.upstream.close());

const askedDuring = async (act: () => Promise<unknown>) => {
  asked = [];
  await act();
  await world.idle();
  return asked;
};

test('a read of what may be cached asks its object once, cold and cached, by its own copy or by another isolate’s', async () => {
  const [ask, other] = [world.isolate(UNLIMITED), world.isolate(UNLIMITED)];
  expect(await askedDuring(() => ask('getSubscription', token))).toEqual(['read', 'keep']);
  expect(await askedDuring(() => ask('getSubscription', token))).toEqual(['read']);
  expect(await askedDuring(() => other('getSubscription', token))).toEqual(['read']);
  expect(world.callsOf(token)).toHaveLength(1);
});

test('what is never cached asks no object', async () => {
  expect(await askedDuring(() => world.isolate(UNLIMITED)('getApiKey', token))).toEqual([]);
});

test('a write that touches what is cached is begun and ended in an object that has been read', async () => {
  const ask = world.isolate(UNLIMITED);
  for (let n = 0; n < 2; n++) await askedDuring(() => ask('getReferralConfig', token));
  expect(await askedDuring(() => ask('updateReferralConfig', token))).toEqual(['swap', 'swap']);
});

test('with a limit, what is never cached asks for a new grant only', async () => {
  const ask = world.isolate({ RATE_LIMIT_PER_MINUTE: '80' });
  const counts = await askedDuring(async () => {
    for (let n = 0; n < 20; n++) await ask('getApiKey', token);
  });
  expect(new Set(counts)).toEqual(new Set(['count']));
  expect(counts.length).toBeLessThan(10);
});

test.each([30, 3, 1])('of a limit of %i the isolates together give no more', async (limit) => {
  const vars = { RATE_LIMIT_PER_MINUTE: String(limit) };
  const isolates = [world.isolate(vars), world.isolate(vars), world.isolate(vars)];
  const statuses = [];
  for (let n = 0; n < 2 * limit + 6; n++) statuses.push((await isolates[n % 3]!('getApiKey', token)).status);
  const given = statuses.filter((status) => status !== 429);
  expect(new Set(given)).toEqual(new Set([200]));
  expect([given.length > limit / 2, given.length <= limit]).toEqual([true, true]);
  expect(world.callsOf(token)).toHaveLength(given.length);
});
