import type { Abortable } from '../core/abortable.ts';
import { type Fault, GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Recorder } from '../core/recorder.ts';
import type { Clock } from '../core/runtime.ts';
import { BACKGROUND, type CallOutcome } from '../core/timeline.ts';
import type { AccountId } from '../store/port.ts';
import type { Store } from '../store/store.ts';
import type { Caller, Outcome, UpstreamAnswer, UpstreamCall } from '../upstream/call.ts';
import type { UpstreamClient } from '../upstream/client.ts';
import { Circuit } from './circuit.ts';
import { Drift } from './drift.ts';
import { FailureWarnings } from './failure-warnings.ts';
import { SlidingWindow } from './sliding-window.ts';
import { Slots } from './slots.ts';

interface Options {
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly recorder?: Recorder | undefined;
  readonly store: Store;
  /** Calls under way at once; undefined if the platform limits them. */
  readonly slots: number | undefined;
  readonly client: UpstreamClient;
  /** Called with the outcome of each attempt that was made. */
  readonly onOutcome: (call: UpstreamCall, outcome: Outcome) => void;
}

const MAX_RETRIES = 2;
const FIRST_PAUSE_MS = 100;

/** Retries may be a tenth of the calls of the last ten seconds, but at least three. */
const BUDGET_MS = 10_000;
const BUDGET_SHARE = 0.1;
const BUDGET_LEAST = 3;

const RETRIED: ReadonlySet<Fault | undefined> = new Set<Fault>(['no_connection', 'broken', 'unavailable']);

/** Makes the calls of the upstream: checks before each attempt, and retries (`contract.md` section 7). */
export class UpstreamCalls {
  readonly #options: Options;
  readonly #circuit: Circuit;
  readonly #slots: Slots | undefined;
  readonly #drift: Drift;
  readonly #warnings: FailureWarnings;
  /** Calls of the last ten seconds, of which the retries may be a share. */
  readonly #calls = new SlidingWindow(BUDGET_MS);
  readonly #retries = new SlidingWindow(BUDGET_MS);
  #underWay = 0;

  constructor(options: Options) {
    this.#options = options;
    this.#circuit = new Circuit(options);
    this.#slots = options.slots === undefined ? undefined : new Slots(options, options.slots);
    this.#drift = new Drift(options);
    this.#warnings = new FailureWarnings(options.logger);
    options.recorder?.watchCircuit(() => this.#circuit.open);
    options.metrics.watch('calls', () => this.#underWay);
  }

  get isCircuitOpen(): boolean {
    return this.#circuit.open !== undefined;
  }

  /**
   * Throws what cooldown or circuit would refuse a call with. Writes ask this before they are stored.
   * @throws GatewayError `rate_limited`, `upstream_unavailable`
   */
  assertAllowed(call: Caller, now = this.#options.clock.now()): void {
    this.#assertNoCooldown(call.account, now);
    this.#circuit.assertClosed(call, now);
  }

  /** Makes a call, with its retries. @throws GatewayError of a check or of the exchange; the reason of the call's abort */
  async make(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { clock } = this.#options;
    this.#calls.add(clock.now());
    let failure: unknown;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attempt(call);
      } catch (error) {
        // If a check refuses the retry, the error of the last attempt says more.
        if (tries > 1 && isNotSent(error)) throw failure;
        failure = error;
        const pauseMs = this.#pauseAfter(error, call, tries);
        if (pauseMs === undefined) throw error;
        await call.request.during('back-off', pause(clock, pauseMs, call.abortable), call.leg);
      }
    }
  }

  /** One attempt: the checks, a slot, the exchange. */
  async #attempt(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { clock, client } = this.#options;
    const { request, owner } = call;
    call.attemptAt = clock.now();
    call.phase = undefined;
    this.assertAllowed(call, call.attemptAt);
    const era = this.#circuit.enter(call, call.attemptAt);
    let [hasSlot, isMade] = [false, false];
    let answer: UpstreamAnswer | undefined;
    let failure: unknown;
    try {
      if (this.#slots?.take(owner) === false) {
        await request.during('slot', this.#slots.wait(call, call.attemptAt), call.leg);
        call.attemptAt = clock.now();
      }
      hasSlot = true;
      this.#assertNoCooldown(call.account, call.attemptAt); // a 429 may have come while it waited
      if (call.endsAt <= call.attemptAt) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
      isMade = true;
      this.#underWay++;
      request.upstreamCalls++;
      return (answer = await client.send(call));
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const kind = answer ? 'good' : isMade ? kindOf(failure, call) : 'abandoned';
      const outcome: Outcome = { kind, answer, error: failure, now: clock.now() };
      if (hasSlot) this.#slots?.release(owner);
      this.#circuit.settled(era, call, outcome);
      if (isMade) this.#settled(call, outcome);
    }
  }

  /** Records an attempt that was sent or tried to: metrics, drift, warnings, cooldown. */
  #settled(call: UpstreamCall, outcome: Outcome): void {
    const { metrics, store, onOutcome } = this.#options;
    const { operation, request, phase } = call;
    const { kind, answer, error, now } = outcome;
    const ms = now - call.attemptAt;
    const reason = kind === 'failed' && error instanceof GatewayError ? error.particulars.reason : undefined;
    this.#underWay--;
    request.upstreamMs += ms;
    if (reason && call.leg !== BACKGROUND) request.reason = reason;
    phase?.settle(kind, reason);
    metrics.callDone({ operation: operation.id, outcome: kind, reason: reason ?? '' }, ms);
    if (answer) this.#drift.check(operation, answer);
    if (phase && reason) this.#warnings.warn(reason, phase.status, error, now);
    onOutcome(call, outcome);
    const isLimited = error instanceof GatewayError && error.status === 429 && !error.isUnsent;
    const seconds = isLimited ? (error.particulars.retryAfter ?? 0) : 0;
    if (seconds > 0 && call.account !== undefined) store.coolDown(call.account, now + seconds * 1000);
  }

  /** @throws GatewayError `rate_limited` for as long as the upstream's last 429 to the account asked for */
  #assertNoCooldown(account: AccountId | undefined, now: number): void {
    const { store, metrics } = this.#options;
    const leftMs = account === undefined ? 0 : store.coolsUntil(account) - now;
    if (leftMs <= 0) return;
    metrics.refused('cooldown');
    const detail = 'The upstream has asked for fewer calls of this account.';
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: Math.ceil(leftMs / 1000), detail });
  }

  /**
   * How long to wait before the next try of a GET, in milliseconds, with full jitter; undefined if there is none. The budget
   * keeps retries from tripling the load of an upstream in trouble. `tries`: attempts so far.
   */
  #pauseAfter(error: unknown, call: UpstreamCall, tries: number): number | undefined {
    const { clock, random, metrics } = this.#options;
    const isRetried = error instanceof GatewayError && (error.status === 408 || RETRIED.has(error.particulars.fault));
    if (!isRetried || call.operation.method !== 'GET' || call.abortable.isAborted) return undefined;
    const now = clock.now();
    const pauseMs = random() * FIRST_PAUSE_MS * 2 ** (tries - 1);
    const budget = Math.max(BUDGET_LEAST, Math.floor(this.#calls.sum(now) * BUDGET_SHARE));
    if (tries > MAX_RETRIES || now + pauseMs >= call.endsAt || this.#retries.sum(now) >= budget) return undefined;
    this.#retries.add(now);
    metrics.retried(call.operation.id);
    return pauseMs;
  }
}

const isNotSent = (error: unknown) => error instanceof GatewayError && error.particulars.fault === 'not_sent';

/** Waits `ms` milliseconds. Rejects with the reason of an abort. */
function pause(clock: Clock, ms: number, abortable: Abortable): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopTimer = clock.after(ms, () => {
      stopListening();
      resolve();
    });
    const stopListening = abortable.onAbort((reason) => {
      stopTimer();
      reject(reason);
    });
  });
}

function kindOf(error: unknown, { abortable: { isAborted, reason } }: UpstreamCall): CallOutcome {
  const isTimeout = reason instanceof GatewayError && reason.particulars.fault === 'timeout';
  if (isAborted && !isTimeout) return 'abandoned'; // the gateway gave up, which says nothing about the upstream
  return error instanceof GatewayError && error.status < 500 ? 'refused' : 'failed';
}
