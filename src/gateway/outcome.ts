import { GatewayError } from '../core/errors.ts';
import type { NewWrite, OpenState } from '../store/store.ts';
import type { RequestContext } from '../upstream/call.ts';
import { recordOf, type WriteTools, writerOf } from './write.ts';

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
  const { storedAs: account, owner, quota: window } = writer;
  const { session, waitUntil } = context;
  const now = tools.clock.now();
  const [nonce, fingerprint] = [crypto.randomUUID(), ''];
  // An object of an earlier release takes it for a write, which then is over at once.
  const times = { now, endsAt: now, until: now, keyMs: 0 };
  // The write may have changed what is cached: so who tells of it waits.
  const effects = { tags: [], hasCopies: true, isPurchase: false };
  const asked = { account, owner, window, session, key, nonce, fingerprint, waitUntil, isQuestion: true } as const;
  const newWrite: NewWrite = { ...asked, ...times, ...effects };
  const record = await recordOf(tools, { ...writer, newWrite });
  if (!record) throw GatewayError.of('outcome_not_found', { fault: 'not_sent' });
  if (typeof record.outcome === 'string') return { state: record.outcome };
  const { status, at } = record.outcome;
  return { state: 'done', status, at: at === undefined ? undefined : new Date(at).toISOString() };
}
