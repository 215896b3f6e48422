import { describe, expect, test } from 'vitest';
import { PLAIN, WRITE } from './helpers.ts';
import { bodyOf, callOf, tokenOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });

/** A gateway whose clients come from the addresses that they say. */
const openDoors = async () => {
  const world = await openWorld({ TRUSTED_PROXIES: '127.0.0.1' });
  /** Writes of that address, which are never retried: so many that fail, then so many good ones. */
  const send = async (address: string, { bad = 0, good = 0 }, tokens: readonly string[] = [secret(), secret()]) => {
    const steps = [...Array.from({ length: bad }, () => json(500, '')), ...Array.from({ length: good }, () => GOOD)];
    world.upstream.once(callOf(WRITE), ...steps);
    for (const [nth] of steps.entries())
      await world.ask(WRITE, { ...from(address), token: tokens[nth % tokens.length]! });
  };
  /** Whether a new account of that address is refused without a call. */
  const isRefused = async (address: string) => {
    world.upstream.on(callOf(PLAIN), json(200, bodyOf(PLAIN, 1)));
    const before = world.upstream.calls.length;
    const { status } = await world.ask(PLAIN, { ...from(address), token: secret() });
    expect([status, world.upstream.calls.length - before]).toEqual(status === 503 ? [503, 0] : [200, 1]);
    return status === 503;
  };
  return { ...world, send, isRefused };
};

const GOOD = json(200, bodyOf(WRITE, 1));
const addressOf = (nth: number) => `203.0.113.${nth}`;
const STRANGER = '198.51.100.7';

describe('callers are counted by address, and the circuit opens for all when half of them failed most of their calls:', () => {
  test.each<[string, readonly { readonly bad?: number; readonly good?: number }[], boolean]>([
    ['one of two, with two keys', [{ good: 2 }, { bad: 100 }], false],
    ['two of two', [{ bad: 15 }, { bad: 15 }], true],
    ['one of three', [{ good: 1 }, { good: 1 }, { bad: 100 }], false],
    ['two of three', [{ good: 1 }, { bad: 30 }, { bad: 30 }], true],
    ['two of four', [{ good: 1 }, { good: 1 }, { bad: 30 }, { bad: 30 }], true],
    ['two of five', [{ good: 1 }, { good: 1 }, { good: 1 }, { bad: 30 }, { bad: 30 }], false],
    [
      'two of four, of which one failed half of its calls and no more',
      [{ good: 1 }, { good: 1 }, { bad: 9, good: 9 }, { bad: 30 }],
      false,
    ],
    ['all, of which none called more than once', Array.from({ length: 20 }, () => ({ bad: 1 })), true],
  ])('%s', async (_, callers, open) => {
    const world = await openDoors();
    for (const [nth, counts] of callers.entries()) await world.send(addressOf(nth), counts);
    expect(await world.isRefused(STRANGER)).toBe(open);
  });

  test('one that was good is a caller for ten seconds', async () => {
    const world = await openDoors();
    await world.send(addressOf(1), { good: 1 });
    await world.send(addressOf(2), { bad: 12 });
    world.advance(9);
    await world.send(addressOf(3), { bad: 12 });
    expect(await world.isRefused(STRANGER)).toBe(true);
  });

  test('all addresses of one IPv6 network are one', async () => {
    const world = await openDoors();
    await world.send(addressOf(1), { good: 1 });
    for (let host = 1; host <= 30; host++) await world.send(`2001:db8:1:2::${host}`, { bad: 2 });
    expect(await world.isRefused(STRANGER)).toBe(false);
  });
});

const openFor = async (address: string) => {
  const world = await openDoors();
  await world.send(address, { bad: 30 });
  return world;
};

describe('an address that is alone', () => {
  test('is not asked for any more when all its accounts fail, and every other is', async () => {
    const world = await openFor(addressOf(1));
    for (let asked = 0; asked < 3; asked++) {
      expect(await world.isRefused(addressOf(1))).toBe(true);
      expect(await world.isRefused(STRANGER)).toBe(false);
    }
    world.advance(5);
    expect(await world.isRefused(addressOf(1))).toBe(false);
    expect(await world.isRefused(addressOf(1))).toBe(false);
  });

  test('is no longer alone in it when others fail too', async () => {
    const world = await openFor(addressOf(1));
    await world.send(addressOf(2), { bad: 20 });
    await world.send(addressOf(3), { bad: 20 });
    expect(await world.isRefused(STRANGER)).toBe(true);
  });
});

test('two keys of one customer that fail for a minute cost the neighbours nothing', async () => {
  const world = await openDoors();
  const keys = [secret(), secret()];
  const neighbours = [1, 2, 3].map((nth) => ({ ...from(addressOf(nth)), token: secret() }));
  world.upstream.on(
    (to) => !keys.includes(tokenOf(to)) && callOf(PLAIN) === `${to.method} ${to.path}`,
    json(200, bodyOf(PLAIN, 1)),
  );
  for (let second = 0; second < 60; second++) {
    await world.send(addressOf(9), { bad: 6 }, keys);
    for (const neighbour of neighbours) expect(await world.ask(PLAIN, neighbour)).toMatchObject({ status: 200 });
    world.advance(1);
  }
});

describe('after trouble of all, one whose calls go on failing', () => {
  const HOG = addressOf(99);

  const troubledDoors = async () => {
    const world = await openDoors();
    for (let nth = 1; nth <= 25; nth++) await world.send(addressOf(nth), { bad: 1 });
    return world;
  };

  test('does not keep it open for the others: the next call that is let through is of one of them', async () => {
    const world = await troubledDoors();
    expect(await world.isRefused(STRANGER)).toBe(true);
    world.advance(5);
    await world.send(HOG, { bad: 2 });
    expect(await world.isRefused(STRANGER)).toBe(true);
    world.advance(5);
    await world.send(HOG, { bad: 2 });
    expect(await world.isRefused(STRANGER)).toBe(false);
  });

  test('is asked every five seconds as long as there are no others', async () => {
    const world = await troubledDoors();
    world.upstream.calls.length = 0;
    for (let asked = 1; asked <= 3; asked++) {
      world.advance(5);
      await world.send(HOG, { bad: 2 });
      expect(world.upstream.calls).toHaveLength(asked);
    }
  });
});
