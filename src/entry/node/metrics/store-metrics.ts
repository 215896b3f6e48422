import type { Usage } from '../../../store/store.ts';
import { counter, gauge, histogram, type Instrument } from './instruments.ts';

export const usageGauges = (usage: () => Usage): Instrument[] => [
  gauge('portico_cache_bytes', 'Keys and bodies of cached answers.', () => usage().bytes),
  gauge('portico_cache_entries', 'Cached answers.', () => usage().entries),
  gauge('portico_accounts', 'Accounts of which something is held.', () => usage().accounts),
  gauge('portico_idempotency_records', 'Idempotency records.', () => usage().records),
  gauge('portico_limit_windows', 'Windows of limits and budgets.', () => usage().windows),
];

/** Called after each command to the shared store. */
export type OnCommand = (command: string, outcome: 'good' | 'failed', ms: number) => void;

interface Engine {
  /** The part of it that answers, 0 to 1. */
  readonly up: () => number;
  /** Reports that it has not acknowledged. */
  readonly pending: () => number;
}

/** Metrics of the shared store. */
export function engineMetrics({ up, pending }: Engine): { onCommand: OnCommand; instruments: Instrument[] } {
  const seconds = histogram({
    name: 'portico_store_command_duration_seconds',
    help: 'From sending a command to the shared store to its reply.',
    labels: ['command'],
    bounds: [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1], // from a local round trip up to the timeout
  });
  const failures = counter<string>({
    name: 'portico_store_command_failures_total',
    help: 'Commands to the shared store that found no connection, or no reply in time.',
    labels: ['command'],
    known: {},
  });
  const unacknowledged =
    'Reports of ended writes and refused credentials that the shared store has not acknowledged yet.';
  return {
    onCommand(command, outcome, ms) {
      if (outcome === 'good') seconds.observe(command, ms / 1000);
      else failures.add(command);
    },
    instruments: [
      gauge('portico_store_up', '1 while the shared store answers; of a cluster the part that does.', up),
      gauge('portico_store_pending_writes', unacknowledged, pending),
      seconds,
      failures,
    ],
  };
}
