import { each, outcomeOf, type Portico, readBatch, streamOverview, watchOverview } from '../../client/src/index.ts';
import { queriesOf } from '../../client/src/query.ts';
import { PLAN } from './helpers.ts';

const first = async (entries: AsyncIterable<unknown>) => {
  for await (const entry of entries) return entry;
  return undefined;
};

/** Every way in which something is sent. */
export const KINDS: readonly (readonly [string, (portico: Portico, signal: AbortSignal) => Promise<unknown>])[] = [
  ['a read', (portico, signal) => portico.getSubscription(undefined, { signal })],
  ['a write', (portico, signal) => portico.updateReferralConfig({ mode: 'credits' }, { signal })],
  ['a purchase', (portico, signal) => portico.purchasePlan(PLAN, { signal })],
  ['a purchase with a key', (portico, signal) => portico.purchasePlan(PLAN, { signal, idempotencyKey: 'mine' })],
  ['an overview', (portico, signal) => portico.getAccountOverview({}, { signal })],
  ['a sign-in', (portico, signal) => portico.createSession({ token: 'a' }, { signal })],
  ['the answer itself', (portico, signal) => portico.response('getSubscription', undefined, { signal })],
  ['a stream', (portico, signal) => first(streamOverview(portico, 'getAccountOverview', {}, { signal }))],
  ['a watch', (portico, signal) => first(watchOverview(portico, 'account-overview', { signal }))],
  ['a list', (portico, signal) => first(each(portico, 'listTransactions', {}, { signal }))],
  ['a batch', (portico, signal) => readBatch(portico, { a: ['getSubscription'] }, { signal })],
  ['outcomeOf', (portico, signal) => outcomeOf(portico, { subscription: { plan: 1 } }, { signal })],
  ['a query', (portico, signal) => queriesOf(portico, 'me')('getSubscription').queryFn({ signal })],
  ['pages', (portico, signal) => queriesOf(portico, 'me').pages('listTransactions').queryFn({ signal, pageParam: '' })],
];
