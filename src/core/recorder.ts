import type { Reason } from './errors.ts';
import type { Timed } from './timeline.ts';

/** What may be shown of a client request. Instants in milliseconds of the process's clock. */
export interface Recorded extends Timed {
  readonly method: string;
  readonly route: { readonly name: string; readonly operation?: string | undefined };
  /** When its last reading began: after a wait for a change, if it had one. */
  readonly begunAt: number;
  /** Keyed hash of the credential. */
  readonly account: string | undefined;
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

/** A circuit that is open. `probeAt`: when the next call may be let through. */
export interface OpenCircuit {
  readonly since: number;
  readonly probeAt: number;
}

/** Remembers a little of what has happened, for an operator to look at: numbers and words, never the request itself. */
export interface Recorder {
  /** Told of every request at its end. */
  answered(request: Recorded, status: number, endedAt: number): void;
  unknown(write: UnknownOutcome): void;
  /** Sets the function that the circuit is read with; undefined while it is closed. */
  watchCircuit(read: () => OpenCircuit | undefined): void;
}
