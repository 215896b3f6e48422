import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { Entry } from '../store/store.ts';
import type { CopyOf, Read } from '../upstream/call.ts';
// oxlint-disable-next-line no-restricted-imports -- until sections say themselves what they depend on
import { proxyAccount } from '../proxy-account/rows.ts';

const { getPaymentMethod, getSubscription, listPaymentMethods } = proxyAccount;

export const SUBSCRIPTION: Read = { operation: getSubscription, input: { query: '' } };
export const CARDS: Read = { operation: listPaymentMethods, input: { query: '' } };
export const cardBy = (id: string): Read => ({ operation: getPaymentMethod, input: { id, query: '' } });

export const CARD_ID = /^[0-9]{1,19}$/;

/** The reads that the card will probably need, judging by the copies that this instance has. */
export function cardReads(copyOf: CopyOf): Read[] {
  const subscription = copyOf(SUBSCRIPTION);
  const id = subscription && cardIdIn(subscription);
  if (subscription !== undefined && id === undefined) return [];
  const list = copyOf(CARDS);
  const isInList = id === undefined || list === undefined || cardIn(list, id) !== undefined;
  return isInList ? [CARDS] : [CARDS, cardBy(id)];
}

/** What is in copies of subscriptions and of lists: they never change, so each is searched once. */
const ids = new WeakMap<Entry, string | undefined>();
const cards = new WeakMap<Entry, { readonly id: string; readonly card: string | undefined }>();

/** Undefined if the subscription has no card. */
export function cardIdIn(subscription: Entry): string | undefined {
  if (ids.has(subscription)) return ids.get(subscription);
  const text = idIn(subscription.text, 'payment_method');
  const id = text === 'null' ? undefined : text;
  ids.set(subscription, id);
  return id;
}

/** The card with this id, out of a page of cards. */
export function cardIn(list: Entry, id: string): string | undefined {
  const searched = cards.get(list);
  if (searched?.id === id) return searched.card;
  const results = memberOf(list.text, 'results');
  const items = results ? itemsOf(list.text, results.start).map((span) => cut(list.text, span)) : [];
  const card = items.find((item) => idIn(item, 'id') === id);
  cards.set(list, { id, card });
  return card;
}

/** An id as text, since it may be beyond 2^53. */
function idIn(text: string, name: string): string | undefined {
  const span = memberOf(text, name);
  if (!span) return undefined;
  return text[span.start] === '"' ? stringAt(text, span) : cut(text, span);
}
