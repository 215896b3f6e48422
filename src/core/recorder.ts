import type { ClientRequest } from './request.ts';

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
  answered(request: ClientRequest, status: number, endedAt: number): void;
  unknown(write: UnknownOutcome): void;
  /** Sets the function that the circuit is read with; undefined while it is closed. */
  watchCircuit(read: () => OpenCircuit | undefined): void;
}
