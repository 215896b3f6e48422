import { type Fault, GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { UpstreamCall } from '../upstream/call.ts';
import { accountOf, addressOf, type Recent, RecentCalls } from './recent.ts';

const MAX_RETRIES = 2;
const FIRST_PAUSE_MS = 100;

/** Retries may be a tenth of the calls of the last ten seconds, but at least three. */
const BUDGET_MS = 10_000;
const BUDGET_SHARE = 0.1;
const BUDGET_LEAST = 3;
/** The part of what is left of them that one account, or one address, may have where there are others. */
const PART = 1 / 2;

const RETRIED: ReadonlySet<Fault | undefined> = new Set<Fault>(['refused', 'broken', 'unavailable']);

/**
 * Decides whether a GET is tried again: if the upstream could not be reached or is unavailable, and within the request's
 * deadline. A budget keeps retries from tripling the load of an upstream in trouble, and nobody takes all of it from
 * others. Pauses have full jitter.
 */
export class Retries {
  readonly #recent = new RecentCalls(BUDGET_MS);
  readonly #metrics: Metrics;
  readonly #random: () => number;

  /** `random`: from 0 to 1. */
  constructor(metrics: Metrics, random = Math.random) {
    this.#metrics = metrics;
    this.#random = random;
  }

  /** Counts a call; the retry budget is a share of these. */
  count(call: UpstreamCall, now: number): void {
    if (call.operation.method === 'GET') this.#recent.count('calls', now, call);
  }

  /**
   * Milliseconds to wait before the next attempt; undefined if there is to be none.
   * @param tries attempts so far
   */
  pauseAfter(error: unknown, call: UpstreamCall, { tries, now }: { tries: number; now: number }): number | undefined {
    const isRetried = error instanceof GatewayError && RETRIED.has(error.particulars.fault);
    if (!isRetried || call.operation.method !== 'GET') return undefined;
    const pauseMs = this.#random() * FIRST_PAUSE_MS * 2 ** (tries - 1);
    if (tries > MAX_RETRIES || now + pauseMs >= call.endsAt || !this.#isInBudget(call, now)) return undefined;
    this.#recent.count('marked', now, call);
    this.#metrics.retried(call.operation.id);
    return pauseMs;
  }

  #isInBudget(call: UpstreamCall, now: number): boolean {
    const { accounts, addresses } = this.#recent;
    const { calls, marked } = accounts.totals(now);
    const left = Math.max(BUDGET_LEAST, Math.floor(calls * BUDGET_SHARE)) - marked;
    const mayHave = (recent: Recent, caller: string) =>
      recent.callers(now).seen === 1 ? left > 0 : recent.of(caller, now).marked < left * PART;
    return mayHave(accounts, accountOf(call)) && mayHave(addresses, addressOf(call));
  }
}
