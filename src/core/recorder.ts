import type { ClientRequest } from './request.ts';

/** A write of which nobody knows whether it has happened. `at`: in milliseconds of the process's clock. */
export interface UnknownOutcome {
  readonly requestId: string;
  readonly operation: string;
  readonly account: string | undefined;
  /** Whether it came with an idempotency key. */
  readonly hasKey: boolean;
  readonly at: number;
}

/** A circuit that is open, since `since`. The next probe may be sent at `probeAt`. Both in milliseconds of the process's clock. */
export interface OpenCircuit {
  readonly since: number;
  readonly probeAt: number;
}

/** Keeps a little of what has happened for an operator to look at: numbers and words, never the request itself. */
export interface Recorder {
  /** Called at the end of every request. */
  answered(request: ClientRequest, status: number, endedAt: number): void;
  unknown(write: UnknownOutcome): void;
  /** Sets the function that the circuit is read with; undefined while it is closed. */
  watchCircuit(read: () => OpenCircuit | undefined): void;
}
