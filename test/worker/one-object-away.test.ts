import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { World } from './world.ts';

const READ = 'getReferralConfig';
/** The contract allows a read 200 ms; the rest is its own, on a busy machine. */
const MOST_READ_MS = 270;

let world: World;

beforeEach(async () => {
  world = new World(await startUpstream());
});

afterEach(() => world.upstream.close());

const AWAY: readonly (readonly [string, () => Promise<never>])[] = [
  ['fails', () => Promise.reject(new Error('away'))],
  ['hangs', () => new Promise(() => {})],
];

describe.each(AWAY)('while one object %s', (_, away) => {
  test('its account reads, at most 200 ms later, and what it does not need it for is as ever', async () => {
    const ask = world.isolate();
    const [lost, other] = [secret(), secret()];
    for (const token of [lost, other]) await ask(READ, token);
    const [its] = world.asked;
    world.before = async (object) => (object === its ? away() : undefined);
    const took = [];
    for (let n = 0; n < 3; n++) {
      const from = performance.now();
      expect(await ask(READ, lost)).toMatchObject({ status: 200, mark: 1, cache: 'portico; fwd=miss' });
      took.push(performance.now() - from);
    }
    expect(Math.min(...took)).toBeLessThan(MOST_READ_MS);
    expect((await ask('/livez')).status).toBe(200);
    expect((await ask('createApiKey', lost)).status).toBe(201); // it invalidates nothing that is cached
    expect(await ask('purchasePlan', lost)).toMatchObject({ status: 503 });
    expect(world.charges({ token: lost })).toBe(0);
    expect(await ask(READ, other)).toMatchObject({ status: 200, cache: expect.stringMatching(/^portico; hit/) });
    expect((await ask('purchasePlan', other)).status).toBe(201);
  });
});

test('an end of a write that its object has not acknowledged is reported again, and its mark stands until then', async () => {
  const [one, other] = [world.isolate(), world.isolate()];
  const token = secret();
  for (const ask of [one, other]) await ask(READ, token);
  let failures = 2;
  world.before = async (_, method) => {
    if (method === 'endWrite' && failures-- > 0) throw new Error('away');
  };
  const hidden = await one('updateReferralConfig', token);
  expect(hidden.status).toBe(200);
  await world.idle();
  expect(failures).toBe(-1);
  for (const ask of [other, one]) expect((await ask(READ, token)).mark).toBe(2);
  for (const ask of [other, one])
    expect(await ask(READ, token)).toMatchObject({ mark: 2, cache: expect.stringMatching(/^portico; hit/) });
});

test('one that is never acknowledged leaves the mark until its time', async () => {
  const [one, other] = [world.isolate(), world.isolate()];
  const token = secret();
  for (const ask of [one, other]) await ask(READ, token);
  world.before = async (_, method) => {
    if (method === 'endWrite') throw new Error('away');
  };
  expect((await one('updateReferralConfig', token)).status).toBe(200);
  for (const ask of [other, one, other])
    expect(await ask(READ, token)).toMatchObject({ mark: 2, cache: 'portico; fwd=miss' });
  world.before = async () => undefined;
  await world.idle();
  for (const ask of [other, one]) expect((await ask(READ, token)).mark).toBe(2);
});
