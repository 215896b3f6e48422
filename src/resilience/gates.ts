import type { GatewayError } from '../core/errors.ts';
import type { UpstreamAnswer } from '../upstream/answer.ts';
import type { UpstreamCall } from '../upstream/client.ts';
import type { Era } from './circuit.ts';

/** One attempt at a call of the upstream, as gates see it. */
export interface Attempt {
  readonly call: UpstreamCall;
  /** While it passes the gates the current time, then when it was sent; in milliseconds of the process's clock. */
  now: number;
  /** The era of the circuit in which it was let through. */
  era?: Era | undefined;
}

/** How an attempt ended: an answer, or what it failed with. */
export interface Outcome {
  readonly answer?: UpstreamAnswer;
  readonly error?: unknown;
  readonly now: number;
}

/** Decides whether a call may be made, and learns how it ended. */
export interface Gate {
  /**
   * Lets an attempt through. Only the gate for slots may make it wait.
   * @throws GatewayError if the attempt may not be made
   */
  admit?(attempt: Attempt): void | Promise<void>;
  /** Called for each attempt that this gate let through. */
  settled?(attempt: Attempt, outcome: Outcome): void;
}

/** Whether we ended the attempt for another reason than a timeout: that says nothing about the upstream. */
export function isGivenUp({ call }: Attempt, error: GatewayError | undefined): boolean {
  return call.cancellation.isCancelled && error?.particulars.fault !== 'timeout';
}
