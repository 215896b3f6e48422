import type { Held, Read } from '../upstream/request.ts';
import { cardLeg, cardReads } from './card.ts';
import { endingWith, isRefusal, type LegTools, readLeg } from './legs.ts';
import { isBad, type Leg, type Overview, type Section } from './overview.ts';

/** What a client wants of an overview. */
export interface Composition {
  readonly overview: Overview;
  /** Sections asked for, in the overview's order. */
  readonly wanted: readonly string[];
  /** Any failed section fails the whole (`Prefer: handling=strict`, RFC 7240). */
  readonly strict: boolean;
}

/** Sections under way, in order, also those that others only depend on: each comes out as a leg, or rejects with what fails the whole. */
export type Legs = ReadonlyMap<string, Promise<Leg>>;

/**
 * Starts every leg at once. What fails the whole abandons the other legs: an account that is refused is not asked
 * four times.
 */
export function compose(tools: LegTools, composition: Composition): Legs {
  const { overview, wanted } = composition;
  const vital = new Set(vitalOf(composition));
  const ends = endingWith(tools.caller.signal());
  const shared: LegTools = { ...tools, caller: { ...tools.caller, signal: () => ends.signal } };
  const legs = new Map<string, Promise<Leg>>();
  for (const [name, section] of sectionsFor(overview, wanted)) {
    const leg = startLeg(shared, section, legs).then((done) => {
      if (isBad(done) && (vital.has(name) || isRefusal(done.error))) throw done.error;
      return done;
    });
    leg.catch((error: unknown) => ends.abort(error));
    legs.set(name, leg);
  }
  return legs;
}

/** The sections whose failure fails the whole. */
export function vitalOf({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || isRequired(overview.sections[name]));
}

/** All that will probably have to be read, going by what is held of it. */
export function readsOf({ overview, wanted }: Composition, held: Held): Read[] {
  return sectionsFor(overview, wanted).flatMap(([, section]) =>
    section.from === 'read' ? [readOf(section)] : cardReads(held),
  );
}

const readOf = ({ operation, query = '' }: Extract<Section, { from: 'read' }>): Read => ({
  operation,
  input: { query },
});

const isRequired = (section: Section | undefined) => section?.from === 'read' && section.required === true;

/** Those asked for, and those that they depend on. */
function sectionsFor({ sections }: Overview, wanted: readonly string[]): [string, Section][] {
  const needed = new Set(wanted);
  for (const name of wanted) {
    const section = sections[name];
    if (section?.from === 'card') needed.add(section.of);
  }
  return Object.entries(sections).filter(([name]) => needed.has(name));
}

function startLeg(tools: LegTools, section: Section, others: ReadonlyMap<string, Promise<Leg>>): Promise<Leg> {
  if (section.from === 'read') return readLeg(tools, readOf(section));
  const owner = others.get(section.of);
  if (!owner) throw new Error(`${section.of} has to come before what depends on it`);
  return cardLeg(tools, owner);
}
