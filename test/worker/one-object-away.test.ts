import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { World } from './world.ts';

const READ = 'getReferralConfig';

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
  test('its account reads without copies, and what does not need it is as ever', async () => {
    const ask = world.isolate({ RATE_LIMIT_PER_MINUTE: '0' });
    const [lost, other] = [secret(), secret()];
    for (const token of [lost, other]) await ask(READ, token);
    const [its] = world.asked;
    world.before = async (object) => (object === its ? away() : undefined);
    expect(await ask(READ, lost)).toMatchObject({ status: 200, mark: 1, cache: 'portico; fwd=miss' });
    expect((await ask('/livez')).status).toBe(200);
    expect((await ask('createApiKey', lost)).status).toBe(201); // it invalidates nothing that is cached
    expect(await ask('purchasePlan', lost)).toMatchObject({ status: 503 });
    expect(world.charges({ token: lost })).toBe(0);
    expect(await ask(READ, other)).toMatchObject({ status: 200, cache: expect.stringMatching(/^portico; hit/) });
    expect((await ask('purchasePlan', other)).status).toBe(201);
  });
});

/** Afterwards each has a copy, and has seen the note that was made with it. */
async function readBy(isolates: readonly ReturnType<World['isolate']>[], token: string): Promise<void> {
  for (const ask of [...isolates, ...isolates]) {
    await ask(READ, token);
    await world.idle();
  }
}

/** From now on changes of notes go wrong, but for so many at first. */
const failSwaps = (afterwards: number, failures = Infinity) => {
  let swaps = 0;
  world.before = async (_, method) => {
    if (method !== 'swap') return;
    swaps++;
    if (swaps > afterwards && swaps <= afterwards + failures) throw new Error('away');
  };
};

test('an end of a write that its object has not acknowledged is told again, and its mark hides the copies until then', async () => {
  const [one, other] = [world.isolate(), world.isolate()];
  const token = secret();
  await readBy([one, other], token);
  failSwaps(1, 2);
  expect((await one('updateReferralConfig', token)).status).toBe(200);
  await world.idle();
  for (const ask of [other, one]) expect((await ask(READ, token)).mark).toBe(2);
  await world.idle();
  for (const ask of [other, one])
    expect(await ask(READ, token)).toMatchObject({ mark: 2, cache: expect.stringMatching(/^portico; hit/) });
});

test('one that is not acknowledged leaves its mark', async () => {
  const [one, other] = [world.isolate(), world.isolate()];
  const token = secret();
  await readBy([one, other], token);
  failSwaps(1);
  expect((await one('updateReferralConfig', token)).status).toBe(200);
  for (const ask of [other, one, other])
    expect(await ask(READ, token)).toMatchObject({ mark: 2, cache: 'portico; fwd=miss' });
  world.before = async () => undefined;
  await world.idle();
});
