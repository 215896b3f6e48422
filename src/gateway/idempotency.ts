import { type ErrorCode, GatewayError } from '../core/errors.ts';
import { invalidatedBy } from '../cache/key.ts';
import { canonical } from '../core/canonical.ts';
import { isJson } from '../core/json.ts';
import type { IdempotencyOutcome } from '../core/metrics.ts';
import type { AccountId, Holder, NewWrite, WriteAnswer, WriteEnd, WriteRecord } from '../store/store.ts';
import type { Operation } from '../upstream/operation.ts';
import { allOperations } from '../upstream/operations/index.ts';
import type { OperationInput } from '../upstream/call.ts';
import type { Quota, RequestContext } from '../upstream/request-context.ts';
import type { GatewayDeps } from './deps.ts';

/** Who writes. The request is counted together with its write. */
export interface Writer extends Holder {
  readonly context: RequestContext;
  /** Absent for the social calls, which take no credential. */
  readonly account: AccountId | undefined;
  readonly quota: Quota | undefined;
}

/** A write that a client asks for. */
export interface Write {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly writer: Writer;
}

export interface Written extends WriteAnswer {
  /** The answer to an earlier request with the same key. */
  readonly replayed: boolean;
}

const KEY_MS = 24 * 60 * 60 * 1000;
/** How long the upstream may still carry out a write that got no answer. */
export const LATE_MS = 60_000;

/** A write as the store knows it. */
export async function newWriteOf(
  { clock, digest }: GatewayDeps,
  { operation, input, writer }: Write,
): Promise<NewWrite> {
  const { principal, owner, quota, context } = writer;
  const { endsAt, waitUntil, idempotencyKey: key } = context;
  const tags = writer.account === undefined ? [] : invalidatedBy(operation, input);
  const isPurchase = operation.exclusive === true;
  const isCompared = key !== undefined || isPurchase;
  const asked = () => [operation.id, input.id ?? '', input.query, comparedBody(operation, input)].join(' ');
  return {
    principal,
    owner,
    window: quota?.window,
    tags,
    nonce: crypto.randomUUID(),
    now: clock.now(),
    endsAt,
    until: endsAt + LATE_MS,
    key,
    keyMs: KEY_MS,
    fingerprint: isCompared ? await digest.body(asked()) : '',
    isPurchase,
    session: writer.account === undefined ? undefined : context.session,
    waitUntil,
  };
}

const cachedGroups = new Set(
  allOperations.filter(({ cache }: Operation) => cache).map(({ group }: Operation) => group),
);

/** Whether it has to be stored before it is sent: if it invalidates cached answers, has a key, is a purchase, or comes by cookie. */
export function needsStore({ operation: { invalidates = [], exclusive }, writer }: Write): boolean {
  const groups = invalidates.map((one) => (typeof one === 'string' ? one : one.item));
  const isCached = groups.some((group) => group === 'everything' || cachedGroups.has(group));
  const isKeyed = writer.context.idempotencyKey !== undefined;
  const isByCookie = writer.account !== undefined && writer.context.session !== undefined;
  return isCached || exclusive === true || isKeyed || isByCookie;
}

/** The body in canonical form. One that the operation does not take may be no JSON: then as it came. */
function comparedBody({ notCompared }: Operation, { body, unsent = '' }: OperationInput): string {
  return body !== undefined || isJson(unsent) ? canonical(body ?? unsent, notCompared).text : unsent;
}

/**
 * The answer if the store already has a record of the key, or of an equal purchase.
 * @throws GatewayError `idempotency_key_reused`, `idempotency_in_progress`, `outcome_unknown`
 */
export function again({ metrics }: GatewayDeps, known: WriteRecord, { fingerprint }: NewWrite): Written {
  const { outcome } = known;
  const refuse = (code: ErrorCode, as: IdempotencyOutcome, retryAfter?: number) => {
    metrics.idempotency(as);
    return GatewayError.of(code, { fault: 'not_sent', retryAfter });
  };
  if (known.fingerprint !== fingerprint) throw refuse('idempotency_key_reused', 'key_reused');
  if (outcome === 'under_way') throw refuse('idempotency_in_progress', 'in_progress', 1);
  if (outcome === 'unknown') throw refuse('outcome_unknown', 'outcome_unknown');
  metrics.idempotency('replayed');
  return { ...outcome, replayed: true };
}

export function countEnd({ metrics }: GatewayDeps, { key, isPurchase }: NewWrite, end: WriteEnd): void {
  if (key === undefined && !isPurchase) return;
  if (typeof end === 'object') metrics.idempotency('answered');
  else metrics.idempotency(end === 'unknown' ? 'unknown' : 'released');
}
