import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { UpstreamCall } from '../upstream/client.ts';
import { Recent } from './recent.ts';

interface RetriesOptions {
  readonly metrics: Metrics;
  /** From 0 to 1. */
  readonly random?: (() => number) | undefined;
}

const MAX_RETRIES = 2;
const FIRST_PAUSE_MS = 100;

/** Retries may be a tenth of the calls of the last ten seconds, and three where there were few. */
const BUDGET_MS = 10_000;
const BUDGET_SHARE = 0.1;
const BUDGET_LEAST = 3;

const RETRIED: ReadonlySet<Fault | undefined> = new Set<Fault>(['refused', 'broken', 'unavailable']);

/**
 * Decides whether a GET is tried again: where the upstream could not be reached or said that it cannot serve just now,
 * with full jitter, within the deadline, and within a budget, so that an upstream in trouble is not asked three times as
 * much.
 */
export class Retries {
  readonly #recent = new Recent(BUDGET_MS);
  readonly #metrics: Metrics;
  readonly #random: () => number;

  constructor({ metrics, random = Math.random }: RetriesOptions) {
    this.#metrics = metrics;
    this.#random = random;
  }

  /** Counts a call, of which retries may be a part. */
  count({ operation }: UpstreamCall, now: number): void {
    if (operation.method === 'GET') this.#recent.call(now);
  }

  /**
   * Milliseconds to wait before the next attempt; none where there is to be no other.
   * @param tries so far
   */
  pauseAfter(error: unknown, call: UpstreamCall, { tries, now }: { tries: number; now: number }): number | undefined {
    if (!isRetried(error) || call.operation.method !== 'GET' || call.cancellation.isCancelled) return undefined;
    const pauseMs = this.#random() * FIRST_PAUSE_MS * 2 ** (tries - 1);
    if (tries > MAX_RETRIES || now + pauseMs >= call.endsAt || !this.#isInBudget(now)) return undefined;
    this.#recent.mark(now);
    this.#metrics.retried(call.operation.id);
    return pauseMs;
  }

  #isInBudget(now: number): boolean {
    const { calls, marked } = this.#recent.totals(now);
    return marked < Math.max(BUDGET_LEAST, Math.floor(calls * BUDGET_SHARE));
  }
}

const isRetried = (error: unknown) => error instanceof GatewayError && RETRIED.has(error.particulars.fault);
