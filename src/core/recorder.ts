import type { Reason } from './errors.ts';
import type { Timed } from './timeline.ts';

/** What may be shown of a client request. Instants in milliseconds of the process's clock. */
export interface Recorded extends Timed {
  readonly method: string;
  readonly route: { readonly name: string; readonly operation?: string | undefined };
  readonly startedAt: number;
  /** Keyed hash of the credential. */
  readonly account: string | undefined;
  readonly cache: string | undefined;
  readonly code: string | undefined;
  readonly reason: Reason | undefined;
  /** Sections. */
  readonly fresh: readonly string[] | undefined;
  readonly failed: readonly string[] | undefined;
  readonly stale: readonly string[] | undefined;
}

/** A write of which nobody knows whether it has happened. */
export interface UnknownOutcome {
  readonly requestId: string;
  readonly operation: string;
  readonly account: string | undefined;
  /** Whether it came with an idempotency key. */
  readonly hasKey: boolean;
  readonly at: number;
}

/** A circuit that is open. */
export interface OpenCircuit {
  readonly since: number;
  /** When the next call may be let through. */
  readonly probeAt: number;
}

/** Remembers a little of what has happened, for an operator to look at: numbers and words, never the request itself. */
export interface Recorder {
  /** A request begins to wait for more than the cache. Returns what is to be called at its end; nothing while nobody looks. */
  begun(request: Recorded): (() => void) | undefined;
  /** Told of every request at its end. */
  answered(account: string | undefined, isBad: boolean, now: number): void;
  /** It was slow or has failed. */
  noteworthy(request: Recorded, ended: { readonly status: number; readonly endedAt: number }): void;
  unknown(write: UnknownOutcome): void;
  /** Sets the function that the circuit is read with; undefined while it is closed. */
  watchCircuit(read: () => OpenCircuit | undefined): void;
}
