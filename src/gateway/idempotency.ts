import { type ErrorCode, GatewayError } from '../core/errors.ts';
import { canonical } from '../core/canonical.ts';
import type { IdempotencyOutcome, Metrics } from '../core/metrics.ts';
import type { Clock, Digest, MaybePromise } from '../core/runtime.ts';
import type { Claim, Records, WriteAnswer, WriteRecord } from '../store/store.ts';
import { type Caller, ClientLeft } from '../upstream/caller.ts';
import type { Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';

/** What a client wants done. */
export interface Write {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly caller: Caller;
}

export interface Written extends WriteAnswer {
  /** The answer to an earlier request with the same key. */
  readonly replayed: boolean;
}

export interface IdempotencyTools {
  readonly records: Records;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly metrics: Metrics;
}

/** Carries a write out; calls `begin` when it is about to be sent, and sends nothing if that throws. */
type Send = (begin: () => MaybePromise<void>) => Promise<WriteAnswer>;

const LIFETIME_MS = 24 * 60 * 60 * 1000;

/**
 * Sends a write at most once for its idempotency key; one that is exclusive at most once at a time without a key. The
 * record is there before the first byte goes out, and stays unless nothing can have happened (`contract.md` section 7).
 * @throws GatewayError `idempotency_key_reused`, `idempotency_in_progress`, `outcome_unknown`, `store_unavailable`
 */
export async function once(tools: IdempotencyTools, write: Write, send: Send): Promise<Written> {
  const claim = await claimOf(tools, write);
  if (!claim) return { ...(await send(() => undefined)), replayed: false };
  const known = await tools.records.claim(claim);
  if (known) return again(tools, known, claim);
  const isKept = write.caller.from.idempotencyKey !== undefined;
  const settle = async (outcome: 'answered' | 'released' | 'unknown', answer?: WriteAnswer) => {
    tools.metrics.idempotency(outcome);
    try {
      if (!isKept || outcome === 'released') await tools.records.release(claim);
      else await tools.records.settle(claim, answer ?? 'unknown');
    } catch {
      // The write is over, and its client learns how it ended. A record left unsettled is never taken for free.
    }
  };
  const { status, text } = await send(() => tools.records.begin(claim)).catch(async (error: unknown) => {
    await settle(isUnknown(error) ? 'unknown' : 'released');
    throw error;
  });
  await settle('answered', { status, text });
  return { status, text, replayed: false };
}

/** Whether a write that failed may have been carried out all the same. A fault of ours proves nothing. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof ClientLeft) return false; // only who has not been sent yet ends with its client
  return !(error instanceof GatewayError) || (error.status >= 500 && !error.isUnsent);
}

/** Nothing for a write that may be sent as often as it comes. */
async function claimOf(
  { clock, digest }: IdempotencyTools,
  { operation, input, caller }: Write,
): Promise<Claim | undefined> {
  const key = caller.from.idempotencyKey;
  if (key === undefined && !operation.exclusive) return undefined;
  const asked = [operation.id, input.id ?? '', input.query, canonical(input.body ?? '').text].join(' ');
  const fingerprint = await digest.body(asked);
  const now = clock.now();
  // A client's key holds no space, so that none is ever taken for one of ours.
  const ownKey = `equal ${fingerprint}`;
  return {
    account: caller.party,
    key: key ?? ownKey,
    fingerprint,
    nonce: crypto.randomUUID(),
    now,
    endsAt: caller.endsAt,
    expiresAt: key === undefined ? caller.endsAt : now + LIFETIME_MS,
    lasting: operation.exclusive === true,
  };
}

function again({ metrics }: IdempotencyTools, { fingerprint, outcome }: WriteRecord, claim: Claim): Written {
  const refuse = (code: ErrorCode, as: IdempotencyOutcome) => {
    metrics.idempotency(as);
    return GatewayError.of(code, { fault: 'withheld' });
  };
  if (fingerprint !== claim.fingerprint) throw refuse('idempotency_key_reused', 'key_reused');
  if (outcome === 'under_way') throw refuse('idempotency_in_progress', 'in_progress');
  if (outcome === 'unknown') throw refuse('outcome_unknown', 'outcome_unknown');
  metrics.idempotency('replayed');
  return { ...outcome, replayed: true };
}
