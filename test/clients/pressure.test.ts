import { beforeEach, describe, expect, test } from 'vitest';
import type { ServerResponse } from 'node:http';
import { Traffic } from '../../src/entry/node/server/draining.ts';
import { LoopPressure } from '../../src/entry/node/server/pressure.ts';

const MANY = 1_000;

let clock: number;
let utilization: number;
let done: number;
let pressure: LoopPressure;

beforeEach(() => {
  [clock, utilization, done] = [0, 0.5, 0];
  pressure = new LoopPressure({ now: () => clock, utilization: () => utilization, done: () => done });
});

interface Past {
  readonly ms: number;
  readonly busy: number;
  /** Requests that were over in a second of it. */
  readonly rate?: number;
  readonly lookMs?: number;
}

function pass({ ms, busy, rate = 4_000, lookMs = 50 }: Past): void {
  utilization = busy;
  for (const endAt = clock + ms; clock < endAt;) {
    clock += lookMs;
    done += (rate / 1_000) * lookMs;
    pressure.look();
  }
}

describe('a loop', () => {
  test('that has idle moments is not overloaded, however much is in flight: it waits for others', () => {
    pass({ ms: 10_000, busy: 0.9, rate: 10 });
    expect(pressure.isOverloaded(1_000_000)).toBe(false);
  });

  test('that is busy for a second is not overloaded: a burst is served whole', () => {
    pass({ ms: 2_000, busy: 0.5 });
    pass({ ms: 1_000, busy: 1 });
    expect(pressure.isOverloaded(1_000_000)).toBe(false);
  });

  test.each([100, 600, 5_000])('that stood still for %i ms is not overloaded', (lookMs) => {
    pass({ ms: 2_000, busy: 0.5 });
    pass({ ms: lookMs, busy: 1, rate: 1, lookMs });
    expect(pressure.isOverloaded(MANY)).toBe(false);
    pass({ ms: 150, busy: 1 });
    expect(pressure.isOverloaded(MANY)).toBe(false);
  });

  test('that stays busy keeps as much in flight as it works off in a moment, and no more', () => {
    pass({ ms: 5_000, busy: 1, rate: 4_000 });
    expect(pressure.isOverloaded(500)).toBe(false);
    expect(pressure.isOverloaded(700)).toBe(true);
    pass({ ms: 5_000, busy: 1, rate: 400 });
    expect(pressure.isOverloaded(100)).toBe(true);
  });

  test('that is busy is so also with an idle moment now and then', () => {
    pass({ ms: 3_000, busy: 1, rate: 400 });
    pass({ ms: 50, busy: 0.8, rate: 400 });
    pass({ ms: 50, busy: 1, rate: 400 });
    expect(pressure.isOverloaded(MANY)).toBe(true);
  });

  test('that stays busy with few in flight is not overloaded: it is not their doing', () => {
    pass({ ms: 5_000, busy: 1, rate: 0 });
    expect(pressure.isOverloaded(50)).toBe(false);
    expect(pressure.isOverloaded(51)).toBe(true);
  });

  test('is well again soon after it has idle moments', () => {
    pass({ ms: 5_000, busy: 1 });
    expect(pressure.isOverloaded(MANY)).toBe(true);
    pass({ ms: 500, busy: 0.5 });
    expect(pressure.isOverloaded(MANY)).toBe(false);
  });
});

test('an answer given at once counts as done, and is not in flight', () => {
  const traffic = new Traffic();
  traffic.answered({ socket: { writableLength: 0 } } as unknown as ServerResponse);
  expect([traffic.done, traffic.inFlight.size]).toEqual([1, 0]);
});
