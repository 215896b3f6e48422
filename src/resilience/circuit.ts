import { GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { OpenCircuit } from '../core/recorder.ts';
import type { Caller, Outcome } from '../upstream/call.ts';
import { LastCalls } from './last-calls.ts';

const PROBE_MS = 5_000;

interface CircuitTools {
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/**
 * Opens when half of the last calls failed. While it is open it refuses calls, but lets one through every five seconds, the
 * probe, and closes when a probe succeeds. The five seconds begin when the probe is sent, so an upstream that hangs is asked
 * as often. An account whose probe failed lets other accounts go first, since its calls may fail for ever.
 */
export class Circuit {
  readonly #tools: CircuitTools;
  /** The calls since the circuit was last closed. */
  #calls = new LastCalls();
  #open: (OpenCircuit & { probeAt: number; probedBy?: string; doOthersWait: boolean }) | undefined;

  constructor(tools: CircuitTools) {
    this.#tools = tools;
  }

  /** Undefined while it is closed. */
  get open(): OpenCircuit | undefined {
    return this.#open && { since: this.#open.since, probeAt: this.#open.probeAt };
  }

  /** @throws GatewayError `upstream_unavailable` unless the call may be made, as a probe if the circuit is open */
  assertClosed(call: Caller, now: number): void {
    if (!this.#open) return;
    const { probeAt, probedBy, doOthersWait } = this.#open;
    const isLastProber = probedBy === nameOf(call);
    const ms = probeAt - now + (isLastProber && doOthersWait ? PROBE_MS : 0);
    if (ms <= 0) return;
    this.#open.doOthersWait ||= !isLastProber;
    this.#tools.metrics.refused('circuit');
    throw GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter: Math.ceil(ms / 1000) });
  }

  /** Notes a call that is made. Returns an object that stands for the time since the circuit last opened or closed. */
  enter(call: Caller, now: number): object {
    if (!this.#open) return this.#calls;
    Object.assign(this.#open, { probeAt: now + PROBE_MS, probedBy: nameOf(call), doOthersWait: false });
    return this.#open;
  }

  /** Learns from the end of a call. `era`: what `enter` returned. A call of an earlier era says nothing any more. */
  settled(era: object, call: Caller, outcome: Outcome): void {
    if (era !== (this.#open ?? this.#calls)) return;
    const { now } = outcome;
    const sign = signOf(outcome);
    if (this.#open) {
      if (sign === 'nothing') this.#open.probeAt = now;
      if (sign === 'good') this.#close();
    } else if (sign !== 'nothing') {
      const isBad = sign === 'bad';
      this.#calls.add(nameOf(call), { at: now, isBad });
      if (isBad && this.#calls.areHalfBad(now)) this.#trip(now);
    }
  }

  #trip(now: number): void {
    this.#open = { since: now, probeAt: now + PROBE_MS, doOthersWait: false };
    this.#tools.metrics.circuitIs('open');
    this.#tools.logger.warn({}, 'circuit opened: the upstream fails and is not asked');
  }

  #close(): void {
    this.#open = undefined;
    this.#calls = new LastCalls();
    this.#tools.metrics.circuitIs('closed');
    // Logged at the level of the opening, so that whoever reads of the opening reads of the closing.
    this.#tools.logger.warn({}, 'circuit closed: the upstream answers again');
  }
}

const nameOf = ({ account, owner }: Caller): string => account ?? owner;

/** What a call has shown about the upstream's health; `nothing` if it was not sent or was given up. */
function signOf({ kind, error }: Outcome): 'good' | 'bad' | 'nothing' {
  if (kind === 'good') return 'good';
  if (!(error instanceof GatewayError)) return 'nothing';
  const { fault } = error.particulars;
  if (fault === 'not_sent' || kind === 'abandoned') return 'nothing';
  return fault === undefined || fault === 'unusable' ? 'good' : 'bad'; // a refusal of the upstream's has no fault
}
