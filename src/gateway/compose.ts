import { childOf } from '../core/abort.ts';
import type { Entry } from '../store/store.ts';
import type { CopyOf, Read } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import { cardLeg, cardReads, freshCard } from './card.ts';
import type { Hits } from './gateway.ts';
import { goodLeg, isBad, isRefusal, type Leg, type LegTools, readLeg } from './legs.ts';
import type { Overview } from './overviews.ts';

/** What a client wants of an overview. */
export interface Composition {
  readonly overview: Overview;
  /** Sections asked for, in the overview's order. */
  readonly wanted: readonly string[];
  /** Those, and what they depend on. */
  readonly sections: readonly Planned[];
  /** Any failed section fails the whole (`Prefer: handling=strict`, RFC 7240). */
  readonly strict: boolean;
}

interface Planned {
  readonly name: string;
  readonly cardOf: string | undefined;
  /** Absent for a card, whose reads depend on its subscription. */
  readonly read: Read | undefined;
}

/** Sections under way, in order, with those that others depend on. A leg rejects only with what fails the whole. */
export type Legs = ReadonlyMap<string, Promise<Leg>>;

/** The sections that have to be read for those that are wanted. */
export function planOf({ sections }: Overview, wanted: readonly string[]): Planned[] {
  const needed = new Set(wanted);
  for (const name of wanted) {
    const owner = sections[name]?.cardOf;
    if (owner !== undefined) needed.add(owner);
  }
  return Object.entries(sections)
    .filter(([name]) => needed.has(name))
    .map(([name, { cardOf, operation, query = '' }]) => {
      return { name, cardOf, read: cardOf === undefined ? { operation, input: { query } } : undefined };
    });
}

/** All legs from fresh copies, without waiting, and counts the request; undefined if any copy is not fresh. */
export function freshLegs(hits: Hits, context: RequestContext, { sections }: Composition) {
  const holder = hits.holderOf(context);
  if (!holder) return undefined;
  let copies = 0;
  const fresh = (read: Read) => {
    const reading = hits.fresh(holder, read);
    if (reading) copies++;
    return reading;
  };
  const entries = new Map<string, Entry>();
  const legs = new Map<string, Leg>();
  for (const { name, read, cardOf } of sections) {
    const reading = read && fresh(read);
    if (reading?.entry) entries.set(name, reading.entry);
    const owner = cardOf === undefined ? undefined : entries.get(cardOf);
    const leg = reading ? goodLeg(reading, context.origin, 0) : owner && freshCard(owner, fresh, hits.hash);
    if (!leg) return undefined;
    legs.set(name, leg);
  }
  hits.count(context, holder, copies);
  return legs;
}

/**
 * Starts every leg at once. A failure that fails the whole aborts the other legs, so that a refused account does not
 * cost four calls.
 */
export function compose(tools: LegTools, composition: Composition): Legs {
  const vital = vitalOf(composition);
  const controller = childOf(tools.reader.signal);
  const shared: LegTools = { ...tools, reader: { ...tools.reader, signal: controller.signal } };
  const legs = new Map<string, Promise<Leg>>();
  for (const planned of composition.sections) {
    const leg = startLeg(shared, planned, legs).then((done) => {
      if (isBad(done) && (vital.includes(planned.name) || isRefusal(done.error)))
        throw done.error.with({ section: planned.name });
      return done;
    });
    leg.catch((error: unknown) => controller.abort(error));
    legs.set(planned.name, leg);
  }
  return legs;
}

/** The sections whose failure fails the whole. */
export function vitalOf({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || overview.sections[name]?.required);
}

/** All reads that will probably be needed, judging by the copies that this instance has. */
export function readsOf({ sections }: Composition, copyOf: CopyOf): Read[] {
  return sections.flatMap(({ read }) => read ?? cardReads(copyOf));
}

function startLeg(tools: LegTools, { cardOf = '', read }: Planned, others: Legs) {
  if (read) return readLeg(tools, read);
  const owner = others.get(cardOf);
  if (!owner) throw new Error('a section has to come behind what it depends on');
  return cardLeg(tools, owner);
}
