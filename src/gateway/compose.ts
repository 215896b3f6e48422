import type { Reader, Reading } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock, Soon } from '../core/runtime.ts';
import type { Entry } from '../store/store.ts';
import type { CopyOf, Read } from '../upstream/call.ts';
import { withOrigin } from '../upstream/links.ts';
import { CARD_ID, cardBy, cardIdIn, cardIn, cardReads, CARDS, SUBSCRIPTION } from './cards.ts';
import type { Overview, Section } from './overviews.ts';

/** What a client wants of an overview. */
export interface Composition {
  readonly overview: Overview;
  /** Sections asked for, in the overview's order. */
  readonly wanted: readonly string[];
  /** Those, and what they depend on. */
  readonly sections: Sections;
  /** Any failed section fails the whole (`Prefer: handling=strict`, RFC 7240). */
  readonly strict: boolean;
}

type Sections = readonly (readonly [name: string, section: Section])[];

/** The sections that have to be read for those that are wanted. */
export function sectionsFor(wanted: readonly string[], { sections }: Overview): Sections {
  const needed = new Set(wanted.flatMap((name) => [name, sections[name]?.cardOf]));
  return Object.entries(sections).filter(([name]) => needed.has(name));
}

/** All reads that will probably be needed, judging by the copies that this instance has. */
export const readsOf = (sections: Sections, copyOf: CopyOf): Read[] =>
  sections.flatMap(([, section]) => (section.cardOf === undefined ? section : cardReads(copyOf)));

/** The sections whose failure fails the whole. */
export function vitalOf({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || overview.sections[name]?.required);
}

/** Result of a section, in the terms of `meta.sections`. `ms` in milliseconds, `age` and `ttl` in seconds. */
export type Leg = GoodLeg | BadLeg | { readonly state: 'not_applicable'; readonly ms: number };

interface GoodLeg {
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

/** 401 and 403 refuse the account, not only the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;

/**
 * Sections, in order, with those that others depend on; those that no fresh copy answered are under way. A leg rejects
 * only with what fails the whole.
 */
export type Legs = ReadonlyMap<string, Soon<Leg>>;

interface Composing {
  readonly reader: Reader;
  readonly clock: Clock;
  readonly gateway: { read(read: Read, reader: Reader): Promise<Reading> };
}

/**
 * Answers each leg from a fresh copy, or starts it, all at once. A failure that fails the whole aborts the other legs,
 * so that a refused account does not cost four calls.
 */
export function compose(tools: Composing, composition: Composition): Legs {
  const part = { ...tools, reader: tools.reader.part() };
  const legs = new Map<string, Soon<Leg>>();
  for (const [name, section] of composition.sections) {
    const { cardOf } = section;
    const leg = cardOf === undefined ? readLeg(part, section) : cardLeg(part, legs.get(cardOf));
    legs.set(name, leg instanceof Promise ? vetted(leg, name, composition) : leg);
  }
  for (const leg of legs.values()) if (leg instanceof Promise) leg.catch((error: unknown) => part.reader.giveUp(error));
  return legs;
}

/** Rejects where it fails the whole. Where another section's failure has ended it, that one is named. */
async function vetted(leg: Promise<Leg>, section: string, composition: Composition): Promise<Leg> {
  const done = await leg;
  const isFatal = isBad(done) && (isRefusal(done.error) || vitalOf(composition).includes(section));
  if (isFatal) throw done.error.with({ section: done.error.particulars.section ?? section });
  return done;
}

/** Reads one section, at once if it can be. */
const readLeg = (tools: Composing, read: Read): Soon<Leg> => freshLeg(tools.reader, read) ?? askLeg(tools, read);

function freshLeg(reader: Reader, read: Read): GoodLeg | undefined {
  const reading = reader.fresh(read);
  return reading && goodLeg(reading, reader.context);
}

const askLeg = ({ gateway, clock, reader }: Composing, read: Read): Promise<Leg> =>
  timed(clock, async () => goodLeg(await gateway.read(read, reader), reader.context));

/** @throws GatewayError `upstream_bad_response` if the upstream answered without a body */
function goodLeg({ entry, age, ttl }: Reading, request: { readonly origin: string }): GoodLeg {
  if (entry === null) throw unusable('The upstream answered without a body.');
  const state = ttl !== undefined && ttl < 0 ? 'stale' : 'fresh';
  return { state, text: withOrigin(entry, request), entry, etag: entry.etag, age, ttl, ms: 0 };
}

const unusable = (detail: string) => GatewayError.of('upstream_bad_response', { detail });

/** Refusals and failures become a bad leg; rejects if the client has left, or with a fault of ours. */
async function timed(clock: Clock, reading: () => Promise<Leg>): Promise<Leg> {
  const startedAt = clock.now();
  const leg = await reading().catch((error: unknown): Leg => {
    if (error instanceof GatewayError) return { state: 'failed', error, ms: 0 };
    throw error;
  });
  return { ...leg, ms: clock.now() - startedAt };
}

/** The payment method that the subscription names, at once if fresh copies say what it is. */
function cardLeg(tools: Composing, subscription: Soon<Leg> | undefined): Soon<Leg> {
  if (!subscription) throw new Error('a section has to come behind what it depends on');
  if (subscription instanceof Promise || !isGood(subscription)) return readCard(tools, subscription);
  const id = cardIdIn(subscription.entry);
  if (id === undefined) return NO_CARD;
  if (!CARD_ID.test(id)) return readCard(tools, subscription);
  const list = freshLeg(tools.reader, CARDS);
  return (list && cardLegIn(list, id)) ?? freshLeg(tools.reader, cardBy(id)) ?? readCard(tools, subscription, list);
}

const NO_CARD: Leg = { state: 'not_applicable', ms: 0 };

/**
 * The list of cards is read at the same time as the subscription, unless there is a fresh copy of it; if the card is
 * not in it, or the list failed, the card is read by its id.
 */
const readCard = (tools: Composing, subscription: Soon<Leg>, freshList?: Leg): Promise<Leg> =>
  timed(tools.clock, async () => {
    const part = tools.reader.part();
    const reading = freshList ?? readCards({ ...tools, reader: part });
    let isRead = false;
    try {
      // If the list is refused with 401 or 403, there is no need to wait for the subscription.
      const source = await Promise.race([subscription, Promise.resolve(reading).then(() => subscription)]);
      if (isBad(source)) return { state: 'skipped', error: source.error, ms: 0 };
      const id = isGood(source) ? cardIdIn(source.entry) : undefined;
      if (id === undefined) return NO_CARD;
      if (!CARD_ID.test(id)) throw unusable('The card has no usable id.');
      const list = await reading;
      isRead = true;
      return (list && cardLegIn(list, id)) ?? (await readLeg(tools, cardBy(id)));
    } finally {
      if (!isRead) part.giveUp(new Error('the list is no longer needed'));
    }
  });

/**
 * Undefined if the last copy of the subscription has no card: then the list is hardly ever needed.
 * @throws GatewayError if the account is refused
 */
async function readCards(tools: Composing): Promise<Leg | undefined> {
  const copy = tools.reader.copy(SUBSCRIPTION);
  if (copy && cardIdIn(copy) === undefined) return undefined;
  const list = await readLeg(tools, CARDS);
  if (isBad(list) && isRefusal(list.error)) throw list.error;
  return list;
}

/** The leg of the card with this id, out of that of a page of cards. */
function cardLegIn(list: Leg, id: string): Leg | undefined {
  if (!isGood(list)) return undefined;
  const text = cardIn(list.entry, id);
  return text === undefined ? undefined : { ...list, text, etag: '' };
}
