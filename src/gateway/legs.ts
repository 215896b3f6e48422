import type { Reader, Reading } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock, Soon } from '../core/runtime.ts';
import type { Entry } from '../store/store.ts';
import { withOrigin } from '../upstream/links.ts';
import type { CopyOf, Read } from '../upstream/call.ts';
import type { Gateway } from './gateway.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import { operations } from '../upstream/operations/index.ts';

/** Result of a section, in the terms of `meta.sections`. `ms` in milliseconds, `age` and `ttl` in seconds. */
export type Leg = GoodLeg | BadLeg | { readonly state: 'not_applicable'; readonly ms: number };

export interface GoodLeg {
  readonly state: 'fresh' | 'stale';
  /** JSON, value for value the upstream's. */
  readonly text: string;
  /** The copy or the answer that it is, or is a part of. */
  readonly entry: Entry;
  /** Strong validator of the text, quoted; empty if none has been made yet. */
  readonly etag: string;
  readonly age: number;
  /** How long the cached copy stays fresh, negative when stale; undefined when the upstream was asked. */
  readonly ttl: number | undefined;
  readonly ms: number;
}

export interface BadLeg {
  readonly state: 'failed' | 'skipped';
  readonly error: GatewayError;
  readonly ms: number;
}

export const isGood = (leg: Leg): leg is GoodLeg => 'text' in leg;

export const isBad = (leg: Leg): leg is BadLeg => 'error' in leg;

/** What the legs of one composed answer share. */
export interface LegTools {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly reader: Reader;
}

/** One section from a fresh copy, without waiting. */
function freshLeg(reader: Reader, read: Read): GoodLeg | undefined {
  const reading = reader.fresh(read);
  return reading && goodLeg(reading, reader.context, 0);
}

/** Reads one section, at once if it can be. */
export const readLeg = (tools: LegTools, read: Read): Soon<Leg> => freshLeg(tools.reader, read) ?? askLeg(tools, read);

/** Refusals and failures become a bad leg; rejects if the client has left, or with a fault of ours. */
async function askLeg({ gateway, clock, reader }: LegTools, read: Read): Promise<Leg> {
  const startedAt = clock.now();
  try {
    const reading = await gateway.read(read, reader);
    return goodLeg(reading, reader.context, clock.now() - startedAt);
  } catch (error) {
    return badLeg(error, clock.now() - startedAt);
  }
}

/** @throws GatewayError `upstream_bad_response` if the upstream answered without a body */
function goodLeg({ entry, age, ttl }: Reading, request: { readonly origin: string }, ms: number): GoodLeg {
  if (entry === null)
    throw GatewayError.of('upstream_bad_response', { detail: 'The upstream answered without a body.' });
  const state = ttl !== undefined && ttl < 0 ? 'stale' : 'fresh';
  return { state, text: withOrigin(entry, request), entry, etag: entry.etag, age, ttl, ms };
}

function badLeg(error: unknown, ms: number): BadLeg {
  if (!(error instanceof GatewayError)) throw error;
  return { state: 'failed', error, ms };
}

/** 401 and 403 refuse the account, not only the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;

const { getPaymentMethod, getSubscription, listPaymentMethods } = operations;

const LIST: Read = { operation: listPaymentMethods, input: { query: '' } };
const SUBSCRIPTION: Read = { operation: getSubscription, input: { query: '' } };
const byId = (id: string): Read => ({ operation: getPaymentMethod, input: { id, query: '' } });

const CARD_ID = /^[0-9]{1,19}$/;

/** The payment method that the subscription names, at once if fresh copies say what it is. */
export function cardLeg(tools: LegTools, subscription: Soon<Leg>): Soon<Leg> {
  if (subscription instanceof Promise || !isGood(subscription)) return readCard(tools, subscription);
  const id = cardIdIn(subscription.entry);
  if (id === undefined) return { state: 'not_applicable', ms: 0 };
  if (!CARD_ID.test(id)) return readCard(tools, subscription);
  const list = freshLeg(tools.reader, LIST);
  return (list && cardOf(list, id)) ?? freshLeg(tools.reader, byId(id)) ?? readCard(tools, subscription, list);
}

/**
 * The list of cards is read at the same time as the subscription, unless there is a fresh copy of it; if the card is
 * not in it, or the list failed, the card is read by its id.
 */
async function readCard(tools: LegTools, subscription: Soon<Leg>, freshList?: Leg): Promise<Leg> {
  const startedAt = tools.clock.now();
  const msSoFar = () => tools.clock.now() - startedAt;
  const part = tools.reader.part();
  const reading = freshList ?? readList({ ...tools, reader: part });
  try {
    // If the list is refused with 401 or 403, there is no need to wait for the subscription.
    const source = await Promise.race([subscription, Promise.resolve(reading).then(() => subscription)]);
    if (isBad(source)) return { state: 'skipped', error: source.error, ms: msSoFar() };
    const id = isGood(source) ? cardIdIn(source.entry) : undefined;
    if (id === undefined) return { state: 'not_applicable', ms: msSoFar() };
    if (!CARD_ID.test(id)) throw GatewayError.of('upstream_bad_response', { detail: 'The card has no usable id.' });
    const list = await reading;
    const leg = (list && cardOf(list, id)) ?? (await readLeg(tools, byId(id)));
    return { ...leg, ms: msSoFar() };
  } catch (error) {
    return badLeg(error, msSoFar());
  } finally {
    part.giveUp(new Error('the list is no longer needed'));
  }
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
  const copy = tools.reader.copy(SUBSCRIPTION);
  if (copy && cardIdIn(copy) === undefined) return undefined;
  const list = await readLeg(tools, LIST);
  if (isBad(list) && isRefusal(list.error)) throw list.error;
  return list;
}

/** The leg of the card with this id, out of that of a page of cards. */
function cardOf(list: Leg, id: string): Leg | undefined {
  if (!isGood(list)) return undefined;
  const text = cardIn(list.entry, id);
  return text === undefined ? undefined : { ...list, text, etag: '' };
}

/** What is in copies of subscriptions and of lists: they never change, so each is searched once. */
const cardIds = new WeakMap<Entry, { readonly id: string | undefined }>();
const cards = new WeakMap<Entry, { readonly id: string; readonly card: string | undefined }>();

/** Undefined if the subscription has no card. */
function cardIdIn(subscription: Entry): string | undefined {
  const searched = cardIds.get(subscription);
  if (searched) return searched.id;
  const text = idIn(subscription.text, 'payment_method');
  const id = text === 'null' ? undefined : text;
  cardIds.set(subscription, { id });
  return id;
}

/** The card with this id, out of a page of cards. */
function cardIn(list: Entry, id: string): string | undefined {
  const searched = cards.get(list);
  if (searched?.id === id) return searched.card;
  const results = memberOf(list.text, 'results');
  const items = results ? Array.from(itemsOf(list.text, results.start), (span) => cut(list.text, span)) : [];
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
