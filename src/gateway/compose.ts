import type { Reader, Reading } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import { andThen, type Clock, type Soon } from '../core/runtime.ts';
import { during } from '../core/timeline.ts';
import type { Read } from '../upstream/call.ts';
import { withOrigin } from '../upstream/links.ts';
import { computedOf } from './computed.ts';
import { type GoodLeg, isBad, isGood, isRefusal, type Leg } from './leg.ts';
import type { Link, Part } from './plan.ts';
import { COMPUTED, type Overview } from './sections.ts';

/** What a client wants of an overview. */
export interface Composition {
  readonly overview: Overview;
  /** Sections asked for, in the overview's order; what is computed is the last. */
  readonly wanted: readonly string[];
  /** Those that are read, and what they depend on. */
  readonly parts: readonly Part[];
  /** Any failed section fails the whole (`Prefer: handling=strict`, RFC 7240). */
  readonly strict: boolean;
}

/** The sections whose failure fails the whole. */
export function vitalOf({ overview, wanted, strict }: Composition): string[] {
  return wanted.filter((name) => strict || overview.sections[name]?.required);
}

/**
 * Sections, in order, with those that others depend on; those that no fresh copy answered are under way. A leg rejects
 * only with what fails the whole.
 */
export type Legs = ReadonlyMap<string, Soon<Leg>>;

interface Composing {
  readonly reader: Reader;
  readonly clock: Clock;
  readonly gateway: { read(read: Read, reader: Reader, leg: string): Promise<Reading> };
}

/**
 * Answers each leg from a fresh copy, or starts it, all at once. A failure that fails the whole aborts the other legs,
 * so that a refused account does not cost four calls.
 */
export function compose(tools: Composing, composition: Composition): Legs {
  const part = { ...tools, reader: tools.reader.part() };
  const legs = new Map<string, Soon<Leg>>();
  for (const one of composition.parts) {
    const leg =
      one.link === undefined
        ? readLeg(part, one, one.name)
        : linkedLeg({ ...part, name: one.name }, one.link, legs.get(one.link.base.name));
    legs.set(one.name, leg instanceof Promise ? vetted(leg, one.name, composition) : leg);
  }
  if (composition.wanted.includes(COMPUTED)) {
    const leg = computedLeg(tools.clock, composition, legs);
    const isDone = !(leg instanceof Promise) && !isBad(leg);
    legs.set(COMPUTED, isDone ? leg : vetted(leg, COMPUTED, composition));
  }
  for (const leg of legs.values()) if (leg instanceof Promise) leg.catch((error: unknown) => part.reader.giveUp(error));
  return legs;
}

/** Rejects where it fails the whole. Where another section's failure has ended it, that one is named. */
async function vetted(leg: Soon<Leg>, section: string, composition: Composition): Promise<Leg> {
  const done = await leg;
  const isFatal = isBad(done) && (isRefusal(done.error) || vitalOf(composition).includes(section));
  if (isFatal) throw done.error.with({ section: done.error.particulars.section ?? section });
  return done;
}

/** What is computed of the other sections, at once if they are there. */
function computedLeg(clock: Clock, { overview, wanted, parts }: Composition, legs: Legs): Soon<Leg> {
  const inputs = new Map<string, Soon<Leg>>();
  for (const { name, required } of parts) {
    const leg = required || wanted.includes(name) ? legs.get(name) : undefined;
    if (leg) inputs.set(name, leg);
  }
  return andThen(allOf(inputs), (all) => computedOf(overview, all, clock));
}

/** At once if all are there. */
function allOf(legs: Legs): Soon<ReadonlyMap<string, Leg>> {
  const done = new Map<string, Leg>();
  for (const [name, leg] of legs) if (!(leg instanceof Promise)) done.set(name, leg);
  if (done.size === legs.size) return done;
  return Promise.all(Array.from(legs, async ([name, leg]) => [name, await leg] as const)).then((all) => new Map(all));
}

/** Reads one section, at once if it can be. */
const readLeg = (tools: Composing, read: Read, name: string): Soon<Leg> =>
  freshLeg(tools.reader, read) ?? askLeg(tools, read, name);

function freshLeg(reader: Reader, read: Read): GoodLeg | undefined {
  const reading = reader.fresh(read);
  return reading && goodLeg(reading, reader.context);
}

const askLeg = ({ gateway, clock, reader }: Composing, read: Read, name: string): Promise<Leg> =>
  timed(clock, async () => goodLeg(await gateway.read(read, reader, name), reader.context));

/** @throws GatewayError `upstream_bad_response` if the upstream answered without a body */
function goodLeg(reading: Reading, request: { readonly origin: string }): GoodLeg {
  const { entry, age, ttl, code, isCacheable } = reading;
  if (entry === null) throw unusable('The upstream answered without a body.');
  const state = ttl !== undefined && ttl < 0 ? 'stale' : 'fresh';
  const text = withOrigin(entry, request);
  return { state, text, entry, isCacheable, etag: entry.etag, age, ttl, code, ms: 0 };
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

/** `name`: of the section that is linked. */
interface Linking extends Composing {
  readonly name: string;
}

/** What another section names, at once if fresh copies say what it is. */
function linkedLeg(tools: Linking, link: Link, base: Soon<Leg> | undefined): Soon<Leg> {
  if (!base) throw new Error('a section has to come behind what it depends on');
  if (base instanceof Promise || !isGood(base)) return readLinked(tools, link, base);
  const id = idIn(base, link);
  if (id === undefined) return NONE;
  if (!link.isId(id)) return readLinked(tools, link, base);
  const list = link.list && freshLeg(tools.reader, link.list);
  return (
    (list && itemLegIn(list, link, id)) ??
    freshLeg(tools.reader, link.itemBy(id)) ??
    readLinked(tools, link, base, list)
  );
}

const NONE: Leg = { state: 'not_applicable', ms: 0 };

const idIn = ({ entry }: GoodLeg, { found }: Link) => entry && found.idIn(entry);

/**
 * The page is read at the same time as the section that names the id, unless there is a fresh copy of it; if the item is
 * not in it, or the page failed, the item is read by its id.
 */
const readLinked = (tools: Linking, link: Link, base: Soon<Leg>, freshList?: Leg): Promise<Leg> =>
  timed(tools.clock, async () => {
    const part = tools.reader.part();
    const reading = freshList ?? readPage({ ...tools, reader: part }, link);
    let isRead = false;
    try {
      // If the page is refused with 401 or 403, there is no need to wait for the other section.
      const source = await Promise.race([base, Promise.resolve(reading).then(() => waitedFor(tools, base))]);
      if (isBad(source)) return { state: 'skipped', error: source.error, ms: 0 };
      const id = isGood(source) ? idIn(source, link) : undefined;
      if (id === undefined) return NONE;
      if (!link.isId(id)) throw unusable(`\`${link.base.name}\` names no usable id.`);
      const list = await reading;
      isRead = true;
      return (list && itemLegIn(list, link, id)) ?? (await readLeg(tools, link.itemBy(id), tools.name));
    } finally {
      if (!isRead) part.giveUp(new Error('the page is no longer needed'));
    }
  });

/** With a phase of its own, or its leg would seem to wait for nothing. */
const waitedFor = ({ clock, reader: { context }, name: leg }: Linking, base: Soon<Leg>): Soon<Leg> =>
  base instanceof Promise ? during(clock, { context, leg }, 'joined', base) : base;

/**
 * Undefined if there is none to look in, or if the last copy of the section that names the id names none: then it is hardly
 * ever needed.
 * @throws GatewayError if the account is refused
 */
async function readPage(tools: Linking, { base, list, found }: Link): Promise<Leg | undefined> {
  const copy = tools.reader.copy(base);
  if (!list || (copy && found.idIn(copy) === undefined)) return undefined;
  const page = await readLeg(tools, list, tools.name);
  if (isBad(page) && isRefusal(page.error)) throw page.error;
  return page;
}

/** The leg of the item with this id, out of that of a page. */
function itemLegIn(list: Leg, { found }: Link, id: string): Leg | undefined {
  const text = isGood(list) && list.entry ? found.itemIn(list.entry, id) : undefined;
  return isGood(list) && text !== undefined ? { ...list, text, etag: '' } : undefined;
}
