import type { CopyOf, Read } from '../upstream/call.ts';
import { ID_FORMS } from '../upstream/operation.ts';
import { Found } from './found.ts';
import { COMPUTED, isFromPath, linkOf, type Overview, parameterOf, type Section } from './sections.ts';

/** A section as it is read. Where its id comes from another one, the read only tells what it looks like. */
export interface Part extends Read {
  readonly name: string;
  readonly required: boolean;
  readonly link?: Link | undefined;
}

/** How a section follows from another one. */
export interface Link {
  /** The section that names the id. */
  readonly base: Part;
  /** The page in which the item will probably be. */
  readonly list: Read | undefined;
  readonly found: Found;
  readonly itemBy: (id: string) => Read;
  readonly isId: (text: string) => boolean;
}

/** How many items a page is to have, as text, by the name of its section. */
export type PageSizes = ReadonlyMap<string, string>;

/** The query parameter of a page. */
export const PAGE_SIZE = 'page_size';

/** An overview, and how it is read. */
export interface Plan {
  readonly overview: Overview;
  readonly hasParameter: boolean;
  /**
   * `text`: that of the path's parameter; `sizes`: how long pages are to be, by section. Without either it is the same list
   * every time: a reader knows its reads again.
   */
  readonly partsFor: (text: string | undefined, sizes?: PageSizes) => readonly Part[];
}

export function planOf(overview: Overview): Plan {
  const entries = Object.entries(overview.sections);
  // What is found in copies is kept from one request to the next.
  const found = new Map(entries.map(([name, section]) => [name, new Found(linkOf(section)?.member ?? '')]));
  const partsFor = (text: string, sizes?: PageSizes) => {
    const parts = new Map<string, Part>();
    for (const [name, section] of entries) {
      const size = sizes?.get(name);
      const sized = size === undefined ? section : { ...section, query: { ...section.query, [PAGE_SIZE]: size } };
      parts.set(name, partOf(name, sized, text, { parts, found }));
    }
    return [...parts.values()];
  };
  const hasParameter = parameterOf(overview) !== undefined;
  const fixed = hasParameter ? undefined : partsFor('');
  return {
    overview,
    hasParameter,
    partsFor: (text = '', sizes) => (sizes ? undefined : fixed) ?? partsFor(text, sizes),
  };
}

interface Before {
  readonly parts: ReadonlyMap<string, Part>;
  readonly found: ReadonlyMap<string, Found>;
}

function partOf(name: string, section: Section, text: string, { parts, found }: Before): Part {
  const { read: operation, id, required = false } = section;
  const textOf = (value: unknown) => (isFromPath(value) ? text : String(value));
  const pairs = Object.entries(section.query ?? {}).map(([key, value]) => [key, textOf(value)]);
  const query = new URLSearchParams(pairs).toString();
  const link = linkOf(section);
  if (!link) return { name, required, operation, input: id === undefined ? { query } : { id: textOf(id), query } };
  const [base, search] = [parts.get(link.section), found.get(name)];
  if (!base || !search) throw new Error('a section has to come behind what it depends on');
  const form = new RegExp(`^${ID_FORMS[operation.idForm ?? 'digits']}$`);
  const itemBy = (one: string): Read => ({ operation, input: { id: one, query } });
  const list = link.list && { operation: link.list, input: { query: '' } };
  const made: Link = { base, list, found: search, itemBy, isId: (one) => form.test(one) };
  return { name, required, operation, input: { query }, link: made };
}

/** The parts that have to be read for the sections that are wanted. */
export function partsOf(wanted: readonly string[], parts: readonly Part[]): readonly Part[] {
  const needed = new Set(wanted);
  for (const { name, required } of parts) if (required && needed.has(COMPUTED)) needed.add(name);
  for (const { name, link } of parts) if (link && needed.has(name)) needed.add(link.base.name);
  return parts.filter(({ name }) => needed.has(name));
}

/** All reads that will probably be needed, judging by the copies that this instance has. */
export const readsOf = (parts: readonly Part[], copyOf: CopyOf): Read[] =>
  parts.flatMap((part) => (part.link === undefined ? part : linkedReads(part.link, copyOf)));

function linkedReads({ base, list, found, itemBy }: Link, copyOf: CopyOf): Read[] {
  const copy = copyOf(base);
  const id = copy && found.idIn(copy);
  if (copy !== undefined && id === undefined) return [];
  const page = list && copyOf(list);
  const isInList = list && (id === undefined || page === undefined || found.itemIn(page, id) !== undefined);
  const item = id === undefined || isInList ? [] : [itemBy(id)];
  return list ? [list, ...item] : item;
}
