import { expect, test } from 'vitest';
import { letThrough, underLoad, WINDOW } from './steady.ts';

test('an account that writes faster than its store can follow is never stopped: some writes begin, and all do afterwards', async () => {
  const { begun, after } = await underLoad();
  for (const count of begun) expect(count).toBeGreaterThan(5);
  expect(['done', 'refused', 'unknown']).toContain(after);
});

test('instances together never let more requests through than a limit', async () => {
  const windows = await letThrough();
  expect(windows.length).toBeGreaterThan(1);
  for (const count of windows) expect(count).toBeLessThanOrEqual(WINDOW.limit);
  expect(windows[0]).toBe(WINDOW.limit);
});
