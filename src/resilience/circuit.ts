import { GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { OpenCircuit } from '../core/recorder.ts';
import { isAddress } from '../store/store.ts';
import { type Gate, isGivenUp, type Outcome } from './gates.ts';
import type { Attempt, Whose } from '../upstream/call.ts';
import { accountOf, clientOf, RecentCalls } from './recent.ts';

const SPAN_MS = 10_000;
const LEAST_CALLS = 20;
const LEAST_OTHERS = 5;
const PROBE_MS = 5_000;

/** One account or one client, if it was alone when half of the calls failed; else all. */
type Scope = { readonly account?: string; readonly client?: string };

/** The calls since the circuit last opened or closed. Outcomes of calls from an earlier era are ignored. */
interface Era {
  readonly calls: RecentCalls;
  /** For whom it is open, and since when. */
  readonly openFor?: Scope & { readonly since: number };
  /** While it is open: when the next call may be let through, who made the last one, and whether others were refused since. */
  probe: { at: number; readonly by?: string; isWanted?: boolean };
}

const closed = (): Era => ({ calls: new RecentCalls(SPAN_MS), probe: { at: 0 } });

/**
 * Opens when half of the last calls failed, by all calls and by all clients. While open it refuses with
 * `upstream_unavailable`, but lets one call through every five seconds; it closes when one of these succeeds. The next
 * one is for others, if any were refused: the calls of one may fail for ever. Others do not wait for that
 * call, as they would with cockatiel's breaker, since an upstream that hangs would keep them all.
 */
export class Circuit {
  readonly #tools: { readonly metrics: Metrics; readonly logger: Logger };
  #era = closed();

  constructor(tools: { readonly metrics: Metrics; readonly logger: Logger }) {
    this.#tools = tools;
  }

  /** Undefined while it is closed. No address is in it. */
  get open(): OpenCircuit | undefined {
    const { openFor, probe } = this.#era;
    if (!openFor) return undefined;
    return { since: openFor.since, probeAt: probe.at };
  }

  isOpen(call: Whose): boolean {
    const { openFor } = this.#era;
    if (!openFor) return false;
    const { account = accountOf(call), client = clientOf(call) } = openFor;
    return account === accountOf(call) && client === clientOf(call);
  }

  /** @throws GatewayError `upstream_unavailable` while calls like this one are not let through */
  assertClosed(call: Whose, now: number): void {
    const ms = this.isOpen(call) ? this.#leftMs(call, now) : 0;
    if (ms <= 0) return;
    const { probe } = this.#era;
    probe.isWanted ||= probe.by !== this.#nameOf(call);
    this.#tools.metrics.refused('circuit');
    throw GatewayError.of('upstream_unavailable', { fault: 'not_sent', retryAfter: Math.ceil(ms / 1000) });
  }

  readonly gate: Gate = ({ call, now }) => {
    this.assertClosed(call, now);
    const era = this.#era;
    // Counted from sending the probe, not from its end: an upstream that hangs is probed as often.
    if (this.isOpen(call)) era.probe = { at: now + PROBE_MS, by: this.#nameOf(call) };
    return (attempt, outcome) => {
      if (era === this.#era) this.#settled(attempt, outcome);
    };
  };

  #settled(attempt: Attempt, outcome: Outcome): void {
    const sign = signOf(attempt, outcome);
    const isProbe = this.isOpen(attempt.call);
    if (isProbe && sign === 'good') this.#become(closed());
    else if (isProbe && sign === 'nothing') this.#era.probe.at = outcome.now;
    else if (sign !== 'nothing') this.#count(sign, attempt.call, outcome.now);
  }

  #leftMs(call: Whose, now: number): number {
    const { at, by, isWanted } = this.#era.probe;
    return at - now + (isWanted && by === this.#nameOf(call) ? PROBE_MS : 0);
  }

  /** Who may not make the next one too: a client with all its accounts, unless it is open for these. */
  #nameOf(call: Whose): string {
    return this.#era.openFor?.client === undefined ? clientOf(call) : accountOf(call);
  }

  #count(sign: 'good' | 'bad', call: Whose, now: number): void {
    const era = this.#era;
    era.calls.count('calls', now, call);
    if (sign === 'good') return;
    era.calls.count('marked', now, call);
    const scope = scopeOf(era.calls, call, now);
    if (!scope) return;
    const openFor = { ...scope, since: now };
    const opened = { openFor, probe: { at: now + PROBE_MS } };
    const isForAll = openFor.account === undefined && openFor.client === undefined;
    if (isForAll) this.#become({ ...closed(), ...opened });
    else if (!this.isOpen(call)) this.#become({ ...era, ...opened }); // calls of others still count
  }

  /** Where it is open for one account alone. */
  get #accountToTell(): string | undefined {
    const { account, client } = this.#era.openFor ?? {};
    if (account === undefined) return undefined;
    return client !== undefined || isAddress(account) ? 'one client' : account;
  }

  #become(era: Era): void {
    const { metrics, logger } = this.#tools;
    const before = this.#accountToTell;
    this.#era = era;
    const account = this.#accountToTell;
    // For the operator the circuit is what it is for others.
    metrics.circuitIs(era.openFor && account === undefined ? 'open' : 'closed');
    if (account !== undefined)
      logger.warn({ account }, 'circuit opened for one account: half of its calls of the upstream fail');
    else if (era.openFor) logger.warn({}, 'circuit opened: the upstream fails and is not asked');
    // At the same level, so that whoever reads that it began reads that it is over.
    else logger.warn(before === undefined ? {} : { account: before }, 'circuit closed: the upstream answers again');
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

/**
 * For whom the circuit is to open after this call has failed. Looks at the calls of all; at those that are left
 * without the account that failed most; and at clients, so that somebody with several accounts is one of them. One
 * client is never enough where there are others.
 */
function scopeOf({ accounts, clients }: RecentCalls, call: Whose, now: number): Scope | undefined {
  const all = accounts.totals(now);
  if (all.calls < LEAST_CALLS || all.marked * 2 < all.calls) return undefined;
  const { all: clientCount, bad } = clients.names(now);
  if (bad * 2 < clientCount || bad < Math.min(2, clientCount)) return undefined;
  const worst = accounts.worst(now);
  const [calls, marked] = [all.calls - worst.calls, all.marked - worst.marked];
  if (calls === 0) return { account: accountOf(call) };
  if (calls < LEAST_OTHERS || marked * 2 < calls) return undefined;
  return clientCount === 1 ? { client: clientOf(call) } : {};
}
