import { GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { OpenCircuit } from '../core/recorder.ts';
import type { Attempt } from '../upstream/call.ts';
import { type Gate, isGivenUp, type Outcome } from './gates.ts';
import { LastCalls } from './last-calls.ts';

const PROBE_MS = 5_000;

interface CircuitTools {
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/**
 * Opens when half of the last calls failed. While it is open it refuses with `upstream_unavailable`, but lets one call
 * through every five seconds, and closes when one of these succeeds. The five seconds begin when that call is sent, so
 * that an upstream that hangs is asked as often.
 */
export class Circuit {
  readonly #tools: CircuitTools;
  /** Since it was closed. */
  #calls = new LastCalls();
  #open: { readonly since: number; probeAt: number } | undefined;

  constructor(tools: CircuitTools) {
    this.#tools = tools;
  }

  /** Undefined while it is closed. */
  get open(): OpenCircuit | undefined {
    return this.#open;
  }

  /** @throws GatewayError `upstream_unavailable` while no call is let through */
  assertClosed(now: number): void {
    const ms = this.#open ? this.#open.probeAt - now : 0;
    if (ms <= 0) return;
    this.#tools.metrics.refused('circuit');
    throw GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter: Math.ceil(ms / 1000) });
  }

  readonly gate: Gate = ({ now }) => {
    this.assertClosed(now);
    const [open, calls] = [this.#open, this.#calls];
    if (open) open.probeAt = now + PROBE_MS;
    return (attempt, outcome) => {
      // A call from before it opened or closed is too late to say anything.
      if (open === this.#open && calls === this.#calls) this.#settled(attempt, outcome);
    };
  };

  #settled(attempt: Attempt, outcome: Outcome): void {
    const { call } = attempt;
    const { now } = outcome;
    const sign = signOf(attempt, outcome);
    if (this.#open) {
      if (sign === 'nothing') this.#open.probeAt = now;
      if (sign === 'good') this.#close();
    } else if (sign !== 'nothing') {
      const isBad = sign === 'bad';
      this.#calls.add(call.account ?? call.owner, { at: now, isBad });
      if (isBad && this.#calls.areHalfBad(now)) this.#opens(now);
    }
  }

  #opens(now: number): void {
    this.#open = { since: now, probeAt: now + PROBE_MS };
    this.#tools.metrics.circuitIs('open');
    this.#tools.logger.warn({}, 'circuit opened: the upstream fails and is not asked');
  }

  #close(): void {
    this.#open = undefined;
    this.#calls = new LastCalls();
    this.#tools.metrics.circuitIs('closed');
    // At the same level, so that whoever reads that it began reads that it is over.
    this.#tools.logger.warn({}, 'circuit closed: the upstream answers again');
  }
}

/** What a call has shown about the upstream's health; `nothing` if it was not sent or was given up. */
function signOf(attempt: Attempt, { answer, error }: Outcome): 'good' | 'bad' | 'nothing' {
  if (answer) return 'good';
  if (!(error instanceof GatewayError)) return 'nothing';
  const { fault } = error.particulars;
  if (fault === 'not_sent' || isGivenUp(attempt)) return 'nothing';
  return fault === undefined || fault === 'unusable' ? 'good' : 'bad'; // a refusal of the upstream's has no fault
}
