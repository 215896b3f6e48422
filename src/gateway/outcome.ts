import { GatewayError } from '../core/errors.ts';
import type { NewWrite, OpenState } from '../store/store.ts';
import type { RequestContext } from '../upstream/call.ts';
import { recordOf, type Writer, type WriteTools, writerOf } from './write.ts';

/** `at`: when the answer was recorded; absent where a release recorded it that did not say so. */
export type Outcome =
  | { readonly state: OpenState }
  | { readonly state: 'done'; readonly status: number; readonly at?: string | undefined };

/**
 * What became of an idempotency key of the account. The request is counted in the same round trip; nothing is sent.
 * @throws GatewayError `outcome_not_found`, see `recordOf`
 */
export async function outcomeOf(tools: WriteTools, context: RequestContext, key: string): Promise<Outcome> {
  const writer = await writerOf(tools, { operation: {}, context, key });
  const record = await recordOf(tools, { ...writer, newWrite: questionOf(writer, tools.clock.now()) });
  if (!record) throw GatewayError.of('outcome_not_found', { fault: 'not_sent' });
  if (typeof record.outcome === 'string') return { state: record.outcome };
  const { status, at } = record.outcome;
  return { state: 'done', status, at: at === undefined ? undefined : new Date(at).toISOString() };
}

const questionOf = ({ storedAs, owner, quota, context, key }: Writer, now: number): NewWrite => ({
  isQuestion: true,
  account: storedAs,
  owner,
  window: quota,
  key,
  nonce: crypto.randomUUID(),
  session: context.session,
  waitUntil: context.waitUntil,
  fingerprint: '',
  isPurchase: false,
  tags: [],
  hasCopies: true, // the write may have changed some: who tells of it, waits
  // An object of an earlier release takes it for a write, which is over at once.
  now,
  endsAt: now,
  until: now,
  keyMs: 0,
});
