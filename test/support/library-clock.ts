import { onTestFinished, vi } from 'vitest';

/** The clock of libraries, which do not have the test's. Until the test is over it stands still unless it is moved. */
export function libraryClock() {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return {
    pass: (ms: number) => void vi.advanceTimersByTime(ms),
    /** No timer runs, as on a machine that is suspended. */
    suspend: (ms: number) => void vi.setSystemTime(Date.now() + ms),
  };
}
