import type { Soon } from '../core/runtime.ts';
import type { CopyOf, Read } from '../upstream/call.ts';
import { cardLeg, cardReads, isBad, isRefusal, type Leg, type LegTools, readLeg } from './legs.ts';
import type { Overview } from './overviews.ts';
import type { core } from 'zod/mini';
import { cut, itemsOf, memberOf, membersOf } from '../core/json.ts';
import type { Operation } from '../upstream/operation.ts';

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

/**
 * Sections, in order, with those that others depend on; those that no fresh copy answered are under way. A leg rejects
 * only with what fails the whole.
 */
export type Legs = ReadonlyMap<string, Soon<Leg>>;

/** The sections that have to be read for those that are wanted. */
export function planOf({ sections }: Overview, wanted: readonly string[]): Planned[] {
  const needed = new Set(wanted);
  for (const name of wanted) {
    const source = sections[name]?.cardOf;
    if (source !== undefined) needed.add(source);
  }
  return Object.entries(sections)
    .filter(([name]) => needed.has(name))
    .map(([name, { cardOf, operation, query = '' }]) => {
      return { name, cardOf, read: cardOf === undefined ? { operation, input: { query } } : undefined };
    });
}

/**
 * Answers each leg from a fresh copy, or starts it, all at once. A failure that fails the whole aborts the other legs,
 * so that a refused account does not cost four calls.
 */
export function compose(tools: LegTools, composition: Composition): Legs {
  const part = tools.reader.part();
  const legs = new Map<string, Soon<Leg>>();
  for (const planned of composition.sections) {
    const leg = startLeg({ ...tools, reader: part }, planned, legs);
    legs.set(planned.name, leg instanceof Promise ? vetted(leg, planned.name, composition) : leg);
  }
  for (const leg of legs.values()) if (leg instanceof Promise) leg.catch((error: unknown) => part.giveUp(error));
  return legs;
}

/** Rejects where it fails the whole. */
async function vetted(leg: Promise<Leg>, section: string, composition: Composition): Promise<Leg> {
  const done = await leg;
  const isFatal = isBad(done) && (isRefusal(done.error) || vitalOf(composition).includes(section));
  if (isFatal) throw done.error.with({ section });
  return done;
}

/** The sections whose failure fails the whole. */
export function vitalOf({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || overview.sections[name]?.required);
}

/** All reads that will probably be needed, judging by the copies that this instance has. */
export function readsOf({ sections }: Pick<Composition, 'sections'>, copyOf: CopyOf): Read[] {
  return sections.flatMap(({ read }) => read ?? cardReads(copyOf));
}

function startLeg(tools: LegTools, { cardOf = '', read }: Planned, others: Legs) {
  if (read) return readLeg(tools, read);
  const subscription = others.get(cardOf);
  if (!subscription) throw new Error('a section has to come behind what it depends on');
  return cardLeg(tools, subscription);
}

/** Trims a section to some fields: the object, every item of an array, every item of a page. Values stay as they are. */
export function project(operation: Operation, text: string, fields: ReadonlySet<string>): string {
  const results = operation.paged ? memberOf(text, 'results') : undefined;
  if (!results) return trim(text, fields);
  return text.slice(0, results.start) + trim(cut(text, results), fields) + text.slice(results.end);
}

function trim(text: string, fields: ReadonlySet<string>): string {
  if (/^\s*\[/.test(text)) return `[${Array.from(itemsOf(text), (item) => trim(cut(text, item), fields)).join(',')}]`;
  if (!/^\s*\{/.test(text)) return text;
  const kept = [...membersOf(text)].filter(({ name }) => fields.has(name));
  return `{${kept.map((member) => `${JSON.stringify(member.name)}:${cut(text, member)}`).join(',')}}`;
}

/** The documented fields of an operation's answer, or of its items if it is a list. */
export function documentedFields({ answer }: Operation): ReadonlySet<string> {
  return new Set(Object.keys(shapeOf(answer)));
}

function shapeOf(answer: core.$ZodType | null | undefined): core.$ZodShape {
  const def = (answer as core.$ZodTypes | null | undefined)?._zod.def;
  if (def?.type === 'array') return shapeOf(def.element);
  if (def?.type !== 'object') return {};
  return def.shape['results'] ? shapeOf(def.shape['results']) : def.shape;
}
