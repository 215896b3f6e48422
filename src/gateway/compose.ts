import type { Entry } from '../store/store.ts';
import type { CopyOf, Read } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import { cardLeg, cardReads, freshCard } from './card.ts';
import type { Hits } from './gateway.ts';
import { goodLeg, isRefusal, type LegTools, readLeg } from './legs.ts';
import { isBad, type Leg, type Overview, type Section } from './overview.ts';

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
  readonly section: Section;
  /** What it reads; absent for a card, whose reads depend on its subscription. */
  readonly read: Read | undefined;
}

/** Sections under way, in order, with those that others depend on. A leg rejects only with what fails the whole. */
export type Legs = ReadonlyMap<string, Promise<Leg>>;

/** The sections that have to be read for those that are wanted. */
export function planOf({ sections }: Overview, wanted: readonly string[]): Planned[] {
  const needed = new Set(wanted);
  for (const name of wanted) {
    const section = sections[name];
    if (section?.from === 'card') needed.add(section.of);
  }
  return Object.entries(sections)
    .filter(([name]) => needed.has(name))
    .map(([name, section]) => ({ name, section, read: section.from === 'read' ? readOf(section) : undefined }));
}

const readOf = ({ operation, query = '' }: Extract<Section, { from: 'read' }>): Read => ({
  operation,
  input: { query },
});

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
  for (const { name, read, section } of sections) {
    const reading = read && fresh(read);
    if (reading?.entry) entries.set(name, reading.entry);
    const owner = section.from === 'card' ? entries.get(section.of) : undefined;
    const leg = reading ? goodLeg(reading, context.origin, 0) : owner && freshCard(owner, fresh, hits.hash);
    if (!leg) return undefined;
    legs.set(name, leg);
  }
  hits.count(context, holder, copies);
  return legs;
}

/**
 * Starts every leg at once. A failure that fails the whole cancels the other legs, so that a refused account does not
 * cost four calls.
 */
export function compose(tools: LegTools, composition: Composition): Legs {
  const vital = vitalOf(composition);
  const { child: cancellation } = tools.reader.cancellation.child();
  const shared: LegTools = { ...tools, reader: { ...tools.reader, cancellation } };
  const legs = new Map<string, Promise<Leg>>();
  for (const planned of composition.sections) {
    const leg = startLeg(shared, planned, legs).then((done) => {
      if (isBad(done) && (vital.includes(planned.name) || isRefusal(done.error))) throw done.error;
      return done;
    });
    leg.catch((error: unknown) => cancellation.cancel(error));
    legs.set(planned.name, leg);
  }
  return legs;
}

/** The sections whose failure fails the whole. */
export function vitalOf({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || isRequired(overview.sections[name]));
}

const isRequired = (section: Section | undefined) => section?.from === 'read' && section.required === true;

/** All reads that will probably be needed, judging by the copies that this instance has. */
export function readsOf({ sections }: Composition, copyOf: CopyOf): Read[] {
  return sections.flatMap(({ read }) => read ?? cardReads(copyOf));
}

function startLeg(tools: LegTools, { section, read }: Planned, others: ReadonlyMap<string, Promise<Leg>>) {
  if (read) return readLeg(tools, read);
  const owner = section.from === 'card' ? others.get(section.of) : undefined;
  if (!owner) throw new Error('a section has to come behind what it depends on');
  return cardLeg(tools, owner);
}
