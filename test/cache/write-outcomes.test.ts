import { describe, expect, test } from 'vitest';
import { isHit, MISS, raising, seen, UNKEPT, versioned } from './helpers.ts';
import { callOf, goodAnswer, isCallTo } from '../support/marked.ts';
import {
  barrier,
  bytes,
  hang,
  hold,
  httpResponse,
  json,
  perCall,
  reply,
  reset,
  type Step,
} from '../support/scripted-upstream.ts';
import { invalidatedReads, writeIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

/** One of each write that touches something, with a read that sees it. */
const onePairEach = writeIds.flatMap((write) =>
  invalidatedReads(write)
    .slice(-1)
    .map((read) => [write, read] as const),
);

const UNKNOWN: readonly (readonly [string, Step])[] = [
  ['is answered 500', json(500)],
  ['is answered 503', json(503)],
  ['is answered 504', json(504)],
  ['is answered with HTML', bytes(httpResponse(200, '<html>', { 'Content-Type': 'text/html' }))],
  ['is answered with a redirect', json(302, '', { Location: '/' })],
  ['is reset', reset()],
];

describe.each(onePairEach)('%s that', (write, read) => {
  test.each(UNKNOWN)(
    '%s counts as done, and no copy from before it is answered when the upstream fails',
    async (_, outcome) => {
      const world = await openWorld();
      versioned(world);
      await world.ask(read);
      world.upstream.on(callOf(write), outcome);
      expect(await world.ask(write)).toMatchObject({ json: { outcome: 'unknown' } });
      const failing = { yes: true };
      world.upstream.on(
        isCallTo(read),
        perCall((call) => (failing.yes ? json(503) : goodAnswer(call, 2))),
      );
      expect(await world.ask(read)).toMatchObject({ status: 503 });
      failing.yes = false;
      expect(seen(await world.ask(read))).toEqual([200, UNKEPT, 2]);
    },
  );

  test('has an unknown outcome is not seen in a copy for a minute, since it may still be carried out', async () => {
    const world = await openWorld({ REQUEST_TIMEOUT_MS: '1000' });
    const state = versioned(world);
    world.upstream.on(callOf(write), reset());
    expect(await world.ask(write)).toMatchObject({ json: { outcome: 'unknown' } });
    for (const version of [1, 2]) {
      state.version = version; // it is carried out between the two
      for (let i = 0; i < 2; i += 1) expect(seen(await world.ask(read))).toEqual([200, UNKEPT, version]);
      world.advance(59);
    }
    // The end of the request's time and 60 s are over.
    expect(seen(await world.ask(read))).toEqual([200, MISS, 2]);
    expect(seen(await world.ask(read))).toEqual([200, isHit, 2]);
  });

  test('is never answered counts as done', async () => {
    const world = await openWorld();
    const state = versioned(world);
    await world.ask(read);
    world.upstream.on(callOf(write), hang());
    const writing = world.ask(write);
    await world.upstream.waitForCalls(1, callOf(write));
    state.version = 2; // it did happen
    world.advance(5);
    expect(await writing).toMatchObject({ status: 504, json: { outcome: 'unknown' } });
    expect(seen(await world.ask(read))).toEqual([200, UNKEPT, 2]);
  });

  test('is left by its client is seen to its end, and counts', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const gate = barrier();
    await world.ask(read);
    world.upstream.once(callOf(write), reply(hold(gate), raising(state)));
    const client = new AbortController();
    const writing = world.ask(write, { signal: client.signal });
    await gate.reached;
    client.abort();
    await expect(writing).rejects.toThrow();
    const over = world.store.ends.next();
    gate.release();
    await over;
    expect(seen(await world.ask(read))).toEqual([200, MISS, 2]);
  });

  test.each([400, 404, 409, 429])('is refused with %i leaves nothing wrong behind', async (status) => {
    const world = await openWorld();
    versioned(world);
    await world.ask(read);
    world.upstream.on(callOf(write), json(status, '{"detail":"No."}'));
    const refused = await world.ask(write);
    expect(refused.status).toBe(status);
    expect(refused.json).not.toHaveProperty('outcome');
    world.clock.advance(HOLD_MS); // a 429 keeps the account's calls back for a while
    expect(await world.ask(read)).toMatchObject({ status: 200 });
  });
});

/** What a 429 that names no time is good for, and a bit. */
const HOLD_MS = 11_000;

test('a write that is refused before it is sent touches nothing', async () => {
  const world = await openWorld();
  versioned(world);
  await world.ask('getReferralConfig');
  expect(await world.ask('updateReferralConfig', { body: { mode: 'nothing' } })).toMatchObject({ status: 400 });
  expect(seen(await world.ask('getReferralConfig'))).toEqual([200, isHit, 1]);
});

test('a failing read that began before a write is not answered with the copy from before it', async () => {
  const world = await openWorld();
  const gate = barrier();
  versioned(world);
  await world.ask('getReferralConfig');
  world.advance(400);
  world.upstream.on(callOf('getReferralConfig'), reply(hold(gate), json(503)));
  const reading = world.ask('getReferralConfig');
  await gate.reached;
  await world.ask('updateReferralConfig');
  gate.release();
  expect(await reading).toMatchObject({ status: 503 });
});
