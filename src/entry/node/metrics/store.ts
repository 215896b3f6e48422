import { Counter, type Metric } from 'prom-client';
import type { Usage } from '../../../store/port.ts';
import { counter, gauge, histogram, registers } from './index.ts';

/** As a gauge, for what only grows. */
const counted = (name: string, help: string, read: () => number): Metric =>
  new Counter({
    name,
    help,
    registers,
    collect() {
      this.reset();
      this.inc(read());
    },
  });

/** What a store holds, and how many lines the log has lost. */
export const usageMetrics = (usage: () => Usage, droppedLines: () => number): Metric[] => [
  gauge('portico_cache_bytes', 'Keys and bodies of cached answers.', () => usage().bytes),
  gauge('portico_cache_bytes_limit', 'How much there may be of these.', () => usage().bytesLimit),
  counted(
    'portico_cache_evictions_total',
    'Copies that had to go, since there was no more room.',
    () => usage().evicted,
  ),
  gauge('portico_cache_entries', 'Cached answers.', () => usage().entries),
  counted('portico_log_lines_dropped_total', 'Log lines that could not be written.', droppedLines),
];

const PENDING =
  'Ends of writes, refused credentials and ended sessions that the shared store has not acknowledged yet.';

/** What the shared store is asked. */
export const COMMANDS = ['hello', 'read', 'count', 'swap', 'keep'];

/** Metrics of the shared store. `onCommand` is to be called after each command. */
export function sharedStoreMetrics(isThere: () => boolean, pending: () => number) {
  const seconds = histogram(
    'portico_store_command_duration_seconds',
    'From sending a command to the shared store to its reply.',
    ['command'],
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1], // from a local round trip up to what a write waits
  );
  const help = 'Commands to the shared store that were refused, or had no reply.';
  const failures = counter('portico_store_command_failures_total', help, { command: COMMANDS });
  for (const command of COMMANDS) seconds.zero({ command });
  return {
    onCommand: (command: string, outcome: 'good' | 'failed', ms: number) =>
      outcome === 'good' ? seconds.observe({ command }, ms / 1000) : failures.inc({ command }),
    instruments: [
      gauge('portico_store_up', '1 while the shared store answers.', () => Number(isThere()), 'min'),
      gauge('portico_store_pending_writes', PENDING, pending),
      seconds,
      failures,
    ] satisfies Metric[],
  };
}
