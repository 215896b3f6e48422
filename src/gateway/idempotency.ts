import { type ErrorCode, GatewayError } from '../core/errors.ts';
import { touchedBy } from '../cache/key.ts';
import { canonical } from '../core/canonical.ts';
import type { IdempotencyOutcome, Metrics } from '../core/metrics.ts';
import type { Clock, Digest } from '../core/runtime.ts';
import type { NewWrite, WriteAnswer, WriteEnd, WriteRecord } from '../store/store.ts';
import type { Caller } from '../upstream/caller.ts';
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
  readonly clock: Clock;
  readonly digest: Digest;
  readonly metrics: Metrics;
}

const LIFETIME_MS = 24 * 60 * 60 * 1000;
/** How long the upstream may still carry out a write that got no answer. */
const LATE_MS = 60_000;

/** What the store has to know of a write. Nothing, where it has no key, buys nothing and touches nothing cached. */
export async function newWriteOf(
  { clock, digest }: IdempotencyTools,
  { operation, input, caller }: Write,
): Promise<NewWrite | undefined> {
  const { principal, endsAt } = caller;
  const tags = caller.account === undefined ? [] : touchedBy(operation, input);
  const key = caller.from.idempotencyKey;
  if (key === undefined && !operation.exclusive && tags.length === 0) return undefined;
  const nonce = crypto.randomUUID();
  const now = clock.now();
  const write = { principal, tags, nonce, now, endsAt, until: endsAt + LATE_MS };
  if (key === undefined && !operation.exclusive) return { ...write, record: undefined, purchase: undefined };
  const body = canonical(input.body ?? '', operation.notCompared).text;
  const fingerprint = await digest.body([operation.id, input.id ?? '', input.query, body].join(' '));
  const lasting = operation.exclusive === true;
  const claim = { account: principal, key: key ?? '', fingerprint, nonce, now, endsAt, expiresAt: now + LIFETIME_MS };
  return {
    ...write,
    record: key === undefined ? undefined : { ...claim, lasting },
    purchase: lasting ? fingerprint : undefined,
  };
}

/**
 * The answer where the store already knows the write's key, or an equal purchase.
 * @throws GatewayError `idempotency_key_reused`, `idempotency_in_progress`, `outcome_unknown`
 */
export function again({ metrics }: IdempotencyTools, known: WriteRecord, { record, purchase }: NewWrite): Written {
  const { fingerprint, outcome } = known;
  const refuse = (code: ErrorCode, as: IdempotencyOutcome, retryAfter?: number) => {
    metrics.idempotency(as);
    return GatewayError.of(code, { fault: 'withheld', ...(retryAfter !== undefined && { retryAfter }) });
  };
  if (fingerprint !== (record?.fingerprint ?? purchase)) throw refuse('idempotency_key_reused', 'key_reused');
  if (outcome === 'under_way') throw refuse('idempotency_in_progress', 'in_progress', 1);
  if (outcome === 'unknown') throw refuse('outcome_unknown', 'outcome_unknown');
  metrics.idempotency('replayed');
  return { ...outcome, replayed: true };
}

export function countEnd({ metrics }: IdempotencyTools, { record, purchase }: NewWrite, end: WriteEnd): void {
  if (!record && purchase === undefined) return;
  if (typeof end === 'object') metrics.idempotency('answered');
  else metrics.idempotency(end === 'unknown' ? 'unknown' : 'released');
}
