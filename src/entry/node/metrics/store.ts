import { Counter, Histogram, type Metric } from 'prom-client';
import { type Changes, LOSSES } from '../../../store/shared/changes.ts';
import type { Usage } from '../../../store/store.ts';
import { counted, counter, gauge, registers } from './series.ts';

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
  gauge('portico_accounts', 'Accounts of which something is held.', () => usage().accounts),
  gauge(
    'portico_accounts_limit',
    'How many accounts there may be of which something is held.',
    () => usage().accountsLimit,
  ),
  gauge('portico_idempotency_records', 'Idempotency records.', () => usage().records),
  gauge(
    'portico_idempotency_bytes',
    'What writes of accounts that the upstream has accepted are remembered in.',
    () => usage().recordBytes,
  ),
  gauge('portico_idempotency_bytes_limit', 'How much there may be of that.', () => usage().recordBytesLimit),
  gauge('portico_limit_windows', 'Windows of limits.', () => usage().windows),
  counted('portico_log_lines_dropped_total', 'Log lines that could not be written.', droppedLines),
];

const LISTENING = '1 while this instance hears of the changes of others. While it does not, every hit asks the store.';
const LATE = 'Hits that had to ask, since this instance had not heard of all changes up to that moment.';

const losses = (read: () => Changes['losses'] | undefined): Metric =>
  new Counter({
    name: 'portico_store_views_dropped_total',
    help: 'Views that were dropped: one by a change of its account; all at once by the other reasons.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of LOSSES) this.inc({ reason }, read()?.[reason] ?? 0);
    },
  });

const USABLE = '1 while the shared store answers in the time that requests give it; of a cluster the part that does.';
const GIVEN_UP = 'Questions to the shared store whose answers were not waited for any longer.';
const PENDING = 'Reports of ended writes and refused credentials that the shared store has not acknowledged yet.';

/** What the metrics of the shared store are read from. */
interface StoreState {
  /** The part of it that answers, 0 to 1. */
  readonly up: number;
  /** Reports that it has not acknowledged. */
  readonly pending: number;
  /** Whether it answers in the time that requests give it. */
  readonly isUsable: boolean;
  readonly waitsGivenUp: number;
  readonly unaskedHits: number;
  /** Absent in a cluster. */
  readonly changes: Changes | undefined;
}

/** Metrics of the shared store. `onCommand` is to be called after each command. */
export function engineMetrics(state: () => StoreState) {
  const seconds = new Histogram<string>({
    name: 'portico_store_command_duration_seconds',
    help: 'From sending a command to the shared store to its reply.',
    labelNames: ['command'],
    buckets: [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1], // from a local round trip up to the timeout
    registers,
  });
  const help = 'Commands to the shared store that found no connection, or no reply in time.';
  const failures = counter('portico_store_command_failures_total', help, { command: [] });
  return {
    onCommand: (command: string, outcome: 'good' | 'failed', ms: number) =>
      outcome === 'good' ? seconds.observe({ command }, ms / 1000) : failures.inc({ command }),
    instruments: [
      gauge(
        'portico_store_up',
        '1 while the shared store answers; of a cluster the part that does.',
        () => state().up,
        'min',
      ),
      gauge('portico_store_usable', USABLE, () => (state().isUsable ? state().up : 0), 'min'),
      counted('portico_store_waits_given_up_total', GIVEN_UP, () => state().waitsGivenUp),
      gauge('portico_store_pending_writes', PENDING, () => state().pending),
      gauge('portico_store_listening', LISTENING, () => Number(state().changes?.isListening ?? false), 'min'),
      counted('portico_store_unasked_hits_total', 'Hits that asked nobody.', () => state().unaskedHits),
      counted('portico_store_late_hits_total', LATE, () => state().changes?.late ?? 0),
      losses(() => state().changes?.losses),
      seconds,
      failures,
    ] satisfies Metric[],
  };
}
