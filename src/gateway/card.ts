import type { Reading } from '../cache/reading.ts';
import { childOf } from '../core/abort.ts';
import { GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { Entry } from '../store/store.ts';
import { operations } from '../upstream/operations/index.ts';
import type { CopyOf, Read } from '../upstream/request.ts';
import { badLeg, goodLeg, type GoodLeg, isBad, isGood, isRefusal, type Leg, type LegTools, readLeg } from './legs.ts';

const { getPaymentMethod, getSubscription, listPaymentMethods } = operations;

const LIST: Read = { operation: listPaymentMethods, input: { query: '' } };
const SUBSCRIPTION: Read = { operation: getSubscription, input: { query: '' } };
const byId = (id: string): Read => ({ operation: getPaymentMethod, input: { id, query: '' } });

const CARD_ID = /^[0-9]{1,19}$/;

/**
 * The payment method that the subscription names. The list of cards is read at the same time as the subscription; if
 * the card is not in it, or the list failed, the card is read by its id.
 */
export async function cardLeg(tools: LegTools, subscription: Promise<Leg>): Promise<Leg> {
  const begunAt = tools.clock.now();
  const msSoFar = () => tools.clock.now() - begunAt;
  const controller = childOf(tools.reader.signal);
  const reading = readList({ ...tools, reader: { ...tools.reader, signal: controller.signal } });
  try {
    // If the list is refused with 401 or 403, there is no need to wait for the subscription.
    const owner = await Promise.race([subscription, reading.then(() => subscription)]);
    if (isBad(owner)) return { state: 'skipped', error: owner.error, ms: msSoFar() };
    const id = isGood(owner) ? cardIdIn(owner.text) : undefined;
    if (id === undefined) return { state: 'not_applicable', ms: msSoFar() };
    if (!CARD_ID.test(id)) throw GatewayError.of('upstream_bad_response', { detail: 'The card has no usable id.' });
    const list = await reading;
    const text = list && isGood(list) ? cardIn(list.text, id) : undefined;
    const leg = list && text !== undefined ? { ...list, text, etag: '' } : await readLeg(tools, byId(id));
    return { ...leg, ms: msSoFar() };
  } catch (error) {
    return badLeg(error, msSoFar());
  } finally {
    controller.abort(new Error('the list is no longer needed'));
  }
}

/** What was found in copies of subscriptions and lists. A copy never changes, so it is searched only once. */
const cardIds = new WeakMap<Entry, { readonly id: string | undefined }>();
const cards = new WeakMap<Entry, { readonly id: string; readonly card: Pick<GoodLeg, 'text' | 'etag'> | undefined }>();

/** The same from fresh copies, without waiting; undefined if one that it needs is not fresh. */
export function freshCard(
  subscription: Entry,
  fresh: (read: Read) => Reading | undefined,
  hash: (text: string) => string,
): Leg | undefined {
  const { id } = known(cardIds, subscription, () => ({ id: cardIdIn(subscription.text) }));
  if (id === undefined) return { state: 'not_applicable', ms: 0 };
  if (!CARD_ID.test(id)) return undefined;
  const list = fresh(LIST);
  const card = list?.entry && freshCardIn(list.entry, id, hash);
  if (list && card)
    return { state: 'fresh', ...card, isAscii: list.entry?.isAscii, age: list.age, ttl: list.ttl, ms: 0 };
  const one = fresh(byId(id));
  return one?.entry ? goodLeg(one, '', 0) : undefined;
}

function freshCardIn(list: Entry, id: string, hash: (text: string) => string) {
  const before = cards.get(list);
  if (before?.id === id) return before.card;
  const text = cardIn(list.text, id);
  const card = text === undefined ? undefined : { text, etag: `"${hash(text)}"` };
  cards.set(list, { id, card });
  return card;
}

function known<T>(map: WeakMap<Entry, T>, entry: Entry, find: () => T): T {
  const before = map.get(entry);
  if (before !== undefined) return before;
  const found = find();
  map.set(entry, found);
  return found;
}

/** The reads that the card will probably need, judging by the copies that this instance has. */
export function cardReads(copyOf: CopyOf): Read[] {
  const subscription = copyOf(SUBSCRIPTION);
  const id = subscription && cardIdIn(subscription);
  if (subscription !== undefined && id === undefined) return [];
  const list = copyOf(LIST);
  const isInList = id === undefined || list === undefined || cardIn(list, id) !== undefined;
  return isInList ? [LIST] : [LIST, byId(id)];
}

/**
 * Undefined if the last copy of the subscription has no card: then the list is hardly ever needed.
 * @throws GatewayError if the account is refused
 */
async function readList(tools: LegTools): Promise<Leg | undefined> {
  const copy = await tools.gateway.peek(SUBSCRIPTION, tools.reader);
  if (copy && cardIdIn(copy.text) === undefined) return undefined;
  const list = await readLeg(tools, LIST);
  if (isBad(list) && isRefusal(list.error)) throw list.error;
  return list;
}

/** The card with this id, out of a page of cards. */
function cardIn(list: string, id: string): string | undefined {
  const results = memberOf(list, 'results');
  if (!results) return undefined;
  for (const span of itemsOf(list, results.start)) {
    const card = cut(list, span);
    if (idIn(card, 'id') === id) return card;
  }
  return undefined;
}

/** Undefined if the subscription has no card. */
function cardIdIn(subscription: string): string | undefined {
  const id = idIn(subscription, 'payment_method');
  return id === 'null' ? undefined : id;
}

/** An id as text, since it may be beyond 2^53. */
function idIn(text: string, name: string): string | undefined {
  const span = memberOf(text, name);
  if (!span) return undefined;
  return text[span.start] === '"' ? stringAt(text, span) : cut(text, span);
}
