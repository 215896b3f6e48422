import type { GatewayError } from '../core/errors.ts';
import type { UpstreamAnswer } from '../upstream/answer.ts';
import type { UpstreamCall } from '../upstream/client.ts';
import type { Era } from './circuit.ts';

/** One attempt at a call of the upstream, as gates see it. */
export interface Attempt {
  readonly call: UpstreamCall;
  /** When the next gate is asked, then when it is sent, in milliseconds of the process's clock. */
  now: number;
  /** While the circuit was in what state it was let through. */
  era?: Era | undefined;
}

/** How an attempt ended: an answer, or what it failed with. */
export interface Outcome {
  readonly answer?: UpstreamAnswer;
  readonly error?: unknown;
  readonly now: number;
}

/** What stands before a call, and looks on. */
export interface Gate {
  /**
   * Lets an attempt through at once; that for slots may have it wait.
   * @throws GatewayError where the attempt is not to be made
   */
  admit?(attempt: Attempt): void | Promise<void>;
  /** Of each attempt that it let through. */
  settled?(attempt: Attempt, outcome: Outcome): void;
}

/** Whether an attempt was ended by us, for another reason than its time: that says nothing of the upstream. */
export function isGivenUp({ call }: Attempt, error: GatewayError | undefined): boolean {
  return call.cancellation.isCancelled && error?.particulars.fault !== 'timeout';
}
