import { describe, expect, test } from 'vitest';
import { PLAIN } from './helpers.ts';
import { bodyOf, callOf, tokenOf } from '../support/marked.ts';
import { json, perCall } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

/** In which some accounts get nothing but 503, and all others a good answer. */
const worldWith = async (failing: readonly string[]) => {
  const world = await openWorld({ TRUSTED_PROXIES: '127.0.0.1' });
  world.upstream.on(
    callOf(PLAIN),
    perCall((to) => (failing.includes(tokenOf(to)) ? json(503, '') : json(200, bodyOf(PLAIN, 1)))),
  );
  /** How often the upstream was called for so many reads of an account. */
  const callsFor = async (token: string, reads: number) => {
    const before = world.upstream.calls.length;
    for (let read = 0; read < reads; read++) await world.ask(PLAIN, { token });
    return world.upstream.calls.length - before;
  };
  return { ...world, callsFor };
};

describe('of the retries that are left an account may have half, where there are others:', () => {
  test('of three in hand one takes one, and the next has one', async () => {
    const [hog, other] = [secret(), secret()];
    const world = await worldWith([hog, other]);
    await world.ask(PLAIN);
    expect(await world.callsFor(hog, 10)).toBe(10 + 1);
    expect(await world.callsFor(other, 1)).toBe(1 + 1);
  });

  test('a read of another account is tried again, however often one has failed', async () => {
    const hog = secret();
    const world = await worldWith([hog]);
    for (let read = 0; read < 60; read++) await world.ask(PLAIN, { token: secret() });
    expect(await world.callsFor(hog, 40)).toBe(40 + 4);
    world.upstream.once(callOf(PLAIN), json(503, ''), json(503, ''));
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
  });

  test('several accounts of one address are no more than one', async () => {
    const hogs = Array.from({ length: 10 }, secret);
    const world = await worldWith(hogs);
    const headers = { 'X-Forwarded-For': '203.0.113.7' };
    await world.ask(PLAIN, { headers });
    const before = world.upstream.calls.length;
    for (const token of hogs) await world.ask(PLAIN, { token });
    expect(world.upstream.calls.length - before).toBe(10 + 1);
    world.upstream.once(callOf(PLAIN), json(503, ''));
    expect(await world.ask(PLAIN, { headers })).toMatchObject({ status: 200 });
  });

  test('alone it may have all of them, and again once the others have been gone for ten seconds', async () => {
    const hog = secret();
    const world = await worldWith([hog]);
    expect(await world.callsFor(hog, 10)).toBe(10 + 3);
    await world.ask(PLAIN);
    world.advance(10);
    expect(await world.callsFor(hog, 10)).toBe(10 + 3);
  });
});
