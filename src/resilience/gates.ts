import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { BEHIND, type CallOutcome } from '../core/timeline.ts';
import { recent } from '../store/bounded.ts';
import { type AccountId, addressOwner, type Owner, type Store } from '../store/port.ts';
import type { Attempt, UpstreamAnswer, UpstreamCall } from '../upstream/call.ts';

/** How an attempt ended: an answer, or what it failed with. */
export interface Outcome {
  readonly answer?: UpstreamAnswer;
  readonly error?: unknown;
  readonly now: number;
}

/** Learns how an attempt ended that its gate let through. */
export type Settled = (attempt: Attempt, outcome: Outcome) => void;

/**
 * Decides whether a call may be made. Only the gate for slots may have it wait.
 * @throws GatewayError if it may not be made
 */
export type Gate = (attempt: Attempt) => Settled | undefined | Promise<Settled>;

/** Whether we ended the call for another reason than a timeout: that says nothing about the upstream. */
export function isGivenUp({ call: { abortable } }: Attempt): boolean {
  const { isAborted, reason } = abortable;
  return isAborted && !(reason instanceof GatewayError && reason.particulars.fault === 'timeout');
}

/** Refuses what was held up until its time was over. */
export const inTime: Gate = ({ call, now }) => {
  if (call.endsAt <= now) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  return undefined;
};

interface GateOptions {
  readonly metrics: Metrics;
  readonly store: Pick<Store, 'coolDown' | 'coolsUntil'>;
}

/** Whose call is to be made, and when. */
interface Asking {
  readonly call: Pick<UpstreamCall, 'account'>;
  readonly now: number;
}

/** Refuses an account's calls for as long as the upstream's last 429 to it asked for. */
export function cooldown({ metrics, store }: GateOptions) {
  const settled: Settled = ({ call: { account } }, { error, now }) => {
    // A 429 of ours was not sent.
    if (!(error instanceof GatewayError) || error.status !== 429 || error.isUnsent) return;
    const { retryAfter = 0 } = error.particulars;
    if (account === undefined || retryAfter === 0) return;
    store.coolDown(account, now + retryAfter * 1000);
  };
  /** @throws GatewayError `rate_limited` */
  const assertOver = ({ call: { account }, now }: Asking): undefined => {
    const leftMs = account === undefined ? 0 : store.coolsUntil(account) - now;
    if (leftMs <= 0) return undefined;
    metrics.refused('cooldown');
    const detail = 'The upstream has asked for fewer calls of this account.';
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: Math.ceil(leftMs / 1000), detail });
  };
  const gate: Gate = (attempt) => {
    assertOver(attempt);
    return settled;
  };
  return { assertOver, gate };
}

const MAX_ACCOUNTS = 50_000;

/** The accounts that the upstream has accepted, as this instance has seen; the most recent ones are kept. */
export function acceptedAccounts(store: Pick<Store, 'accept'>) {
  const accounts = recent<AccountId, true>(MAX_ACCOUNTS);
  const settled: Settled = ({ call: { account, owner } }, { answer, error }) => {
    if (account === undefined) return;
    if (answer && owner !== account) {
      accounts.set(account, true);
      store.accept(account);
    }
    if (error instanceof GatewayError && error.status === 401) accounts.delete(account);
  };
  return {
    gate: () => settled,
    /** Whose share a request takes: the account's if it is accepted, else the address's. */
    ownerOf(account: AccountId | undefined, client: { readonly address: string }): Owner {
      const isAccepted = account !== undefined && accounts.get(account) === true;
      return isAccepted ? account : addressOwner(client.address);
    },
  };
}

/** Counts attempts and measures them, for the request's log line and for metrics. Has to be the last gate. */
export function measured(metrics: Metrics): Gate {
  let underWay = 0;
  metrics.watch('calls', () => underWay);
  const settled: Settled = (attempt, outcome) => {
    const { context, operation } = attempt.call;
    const { phase, now } = attempt;
    const ms = outcome.now - now;
    underWay--;
    context.upstreamMs += ms;
    const became = outcomeOf(attempt, outcome);
    const reason = became === 'failed' ? reasonOf(outcome.error) : undefined;
    if (reason && attempt.call.leg !== BEHIND) context.reason = reason;
    phase?.settle(became, reason);
    metrics.callDone({ operation: operation.id, outcome: became, reason: reason ?? '' }, ms);
  };
  return ({ call }) => {
    underWay++;
    call.context.upstreamCalls++;
    return settled;
  };
}

function outcomeOf(attempt: Attempt, { answer, error }: Outcome): CallOutcome {
  if (answer) return 'good';
  const failure = error instanceof GatewayError ? error : undefined;
  if (isGivenUp(attempt)) return 'abandoned';
  return failure && failure.status < 500 ? 'refused' : 'failed';
}

const reasonOf = (error: unknown) => (error instanceof GatewayError ? error.particulars.reason : undefined);
