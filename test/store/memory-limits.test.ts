import { expect, test } from 'vitest';
import { MemoryLimits } from '../../src/store/memory/limits.ts';
import { limitsContract, MINUTE_MS, windowOf } from './limits.ts';
import { memoryEngine, PATIENT } from './engine.ts';

limitsContract('the memory store', memoryEngine);

const MAX_WINDOWS = 50_000;
const MAX_HOLDS = 10_000;

test('windows are bounded; those used least recently begin anew, and those in use do not', PATIENT, () => {
  const limits = new MemoryLimits();
  const [used, idle] = [windowOf(), windowOf()];
  for (const window of [idle, used]) limits.take(window);
  for (let n = 0; n < 2 * MAX_WINDOWS; n += 1) {
    limits.take(windowOf({ account: `stranger-${n}` }));
    if (n % 1000 === 0) limits.take(used);
  }
  expect(limits.usage().windows).toBeLessThanOrEqual(MAX_WINDOWS);
  expect(limits.take(idle).used).toBe(1);
  expect(limits.take(used).used).toBe(2 + (2 * MAX_WINDOWS) / 1000);
});

test('holds are bounded', () => {
  const limits = new MemoryLimits();
  const until = windowOf().now + MINUTE_MS;
  for (let n = 0; n < 2 * MAX_HOLDS; n += 1) limits.hold(`stranger-${n}`, until);
  expect(limits.usage().windows).toBe(MAX_HOLDS);
  expect(limits.heldUntil(`stranger-${2 * MAX_HOLDS - 1}`)).toBe(until);
});

test('an answer comes at once, so that a hit can be synchronous', () => {
  const limits = new MemoryLimits();
  const window = windowOf();
  for (const result of [limits.take(window), limits.hold(window.account, 1), limits.heldUntil(window.account)])
    expect(result).not.toBeInstanceOf(Promise);
});
