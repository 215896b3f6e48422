import { GatewayError } from '../core/errors.ts';
import type { OpenState } from '../store/port.ts';
import type { RequestContext } from '../upstream/call.ts';
import { recordIn, type WriteTools, writerOf } from './write.ts';

export type Outcome =
  | { readonly state: OpenState }
  | { readonly state: 'done'; readonly status: number; readonly at: string };

/**
 * What became of an idempotency key of the account. The request is counted; nothing is sent.
 * @throws GatewayError `outcome_not_found`, see `recordIn`
 */
export async function outcomeOf(tools: WriteTools, context: RequestContext, key: string): Promise<Outcome> {
  const writer = await writerOf(tools, { operation: {}, context, key });
  const { storedAs: account, quota: window } = writer;
  const { session, waitUntil } = context;
  const asked = tools.store.outcomeOf({ account, window, key, session, waitUntil });
  const record = await recordIn(tools, writer, asked);
  if (!record) throw GatewayError.of('outcome_not_found', { fault: 'not_sent' });
  if (typeof record.outcome === 'string') return { state: record.outcome };
  const { status, at } = record.outcome;
  return { state: 'done', status, at: new Date(at).toISOString() };
}
