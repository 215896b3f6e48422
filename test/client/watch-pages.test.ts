import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { barrier, hold, reset } from '../support/scripted-upstream.ts';
import { problem } from './helpers.ts';
import { FIRST, MINUTES_MS, openWatch, passing, preferenceOf, same, SECOND_MS, valueOf, whole } from './watching.ts';

/** A page, that is shown or hidden as the test says. */
function openPage() {
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  vi.stubGlobal('document', page);
  onTestFinished(() => void vi.unstubAllGlobals());
  return {
    turn(state: 'visible' | 'hidden') {
      page.visibilityState = state;
      page.dispatchEvent(new Event('visibilitychange'));
    },
  };
}

describe('a page that is hidden', () => {
  test('has no open wait, asks every five minutes, and at once when it is shown', async () => {
    const page = openPage();
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), hold(gate), same({}), same({}), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    await gate.reached;
    page.turn('hidden');
    await world.gateway.disconnected(world.gateway.calls[1]!);
    const slow = await world.pauses.next();
    expect(slow.ms).toBe(MINUTES_MS);
    slow.end();
    expect((await world.pauses.next()).ms).toBe(MINUTES_MS);
    expect(world.gateway.calls.map(preferenceOf)).toEqual([undefined, 'changed-sections, wait=30', 'changed-sections']);
    vi.advanceTimersByTime(SECOND_MS);
    page.turn('visible');
    await world.gateway.waitForCalls(4);
    expect(preferenceOf(world.gateway.calls[3]!)).toContain('wait=30');
    await passing(world, 1);
    await next;
  });

  test('and shown again does not ask before Retry-After is over', async () => {
    const page = openPage();
    const limited = problem(429, 'rate_limited', { retryable: true, retry_after: 41 });
    const world = await openWatch([whole('"1"', FIRST), limited, whole('"2"', FIRST)]);
    await world.watch.next();
    const next = world.watch.next();
    expect(await passing(world, 1)).toEqual([SECOND_MS]);
    expect((await world.pauses.next()).ms).toBe(41_000);
    vi.advanceTimersByTime(SECOND_MS);
    page.turn('hidden');
    expect((await world.pauses.next()).ms).toBe(MINUTES_MS - SECOND_MS);
    page.turn('visible');
    expect(await passing(world, 1)).toEqual([40_000]);
    await next;
  });

  test('hears nothing any more of a watch that has ended', async () => {
    const heard = new Set<unknown>();
    const page = {
      visibilityState: 'visible',
      addEventListener: (_: string, hear: unknown) => heard.add(hear),
      removeEventListener: (_: string, hear: unknown) => heard.delete(hear),
    };
    vi.stubGlobal('document', page);
    onTestFinished(() => void vi.unstubAllGlobals());
    const world = await openWatch([whole('"1"', FIRST)]);
    await world.watch.next();
    void world.watch.next();
    await world.pauses.next();
    expect(heard.size).toBe(1);
    await world.watch.return();
    expect(heard.size).toBe(0);
  });

  test('is given its first value at once', async () => {
    openPage().turn('hidden');
    const world = await openWatch([whole('"1"', FIRST)]);
    await world.watch.next();
    expect(world.pauses.lengths).toEqual([]);
  });
});

/** A network that is there or not as the test says. */
function openNetwork() {
  const network = { onLine: true };
  const events = new EventTarget();
  vi.stubGlobal('navigator', network);
  vi.stubGlobal('addEventListener', events.addEventListener.bind(events));
  vi.stubGlobal('removeEventListener', events.removeEventListener.bind(events));
  onTestFinished(() => void vi.unstubAllGlobals());
  return {
    turn(isOnline: boolean) {
      network.onLine = isOnline;
      if (isOnline) events.dispatchEvent(new Event('online'));
    },
  };
}

describe('a network that is gone', () => {
  test('is looked for every half minute, and used as soon as it is back', async () => {
    const network = openNetwork();
    const world = await openWatch([whole('"1"', FIRST), reset(), reset(), whole('"2"', FIRST)]);
    await world.watch.next();
    network.turn(false);
    const next = valueOf(world.watch);
    expect(await passing(world, 2)).toEqual([SECOND_MS, 30_000]);
    expect((await world.pauses.next()).ms).toBe(30_000);
    network.turn(true);
    await next;
    expect(world.gateway.calls).toHaveLength(4);
  });

  test('and is told to be gone is told to be back, though nothing has changed', async () => {
    const network = openNetwork();
    const world = await openWatch([whole('"1"', FIRST), reset(), same()]);
    await world.watch.next();
    network.turn(false);
    const next = valueOf(world.watch);
    await passing(world, 1);
    await world.pauses.next();
    network.turn(true);
    expect((await next).data).toEqual(FIRST);
    expect(world.told).toHaveLength(1);
  });

  test('and comes back during a wait may be another one: it asks anew', async () => {
    const network = openNetwork();
    const gate = barrier();
    const world = await openWatch([whole('"1"', FIRST), hold(gate), whole('"2"', FIRST)]);
    await world.watch.next();
    const next = valueOf(world.watch);
    await passing(world, 1);
    await gate.reached;
    vi.advanceTimersByTime(SECOND_MS);
    network.turn(true);
    await next;
    await world.gateway.disconnected(world.gateway.calls[1]!);
  });
});
