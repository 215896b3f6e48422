import type { core } from 'zod/mini';
import type { ErrorItem, GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { Entry } from '../store/port.ts';
import { invalid } from '../upstream/input.ts';
import { ID_FORMS, type Operation } from '../upstream/operation.ts';
import type { Read, ReadRow, ReadRows } from '../upstream/read.ts';
import type { CopyOf } from './admission.ts';
import { COMPUTED, type From, isFromPath, sourceOf, type Overview, parameterOf } from './overview.ts';

/** How a section is read. */
export interface SectionRead {
  readonly name: string;
  readonly required: boolean;
  readonly row: ReadRow;
  readonly query: string;
  /** Undefined where its id comes from another section. */
  readonly read: Read | undefined;
  readonly dependsOn: DependsOn | undefined;
}

/** How a section gets its id from another one, its base. A copy never changes, so each copy is searched once. */
export class DependsOn {
  /** The name of the base. */
  readonly section: string;
  /** The read of the page in which the item will probably be. */
  readonly list: Read | undefined;
  readonly #member: string;
  readonly #form: RegExp;
  readonly #ids = new WeakMap<Entry, string | undefined>();
  readonly #items = new WeakMap<Entry, { readonly id: string; readonly text: string | undefined }>();

  constructor({ section, member, list }: From, { idForm = 'digits' }: Operation, rows: ReadRows) {
    this.section = section;
    this.list = list && rows.of(list).read(undefined, '');
    this.#member = member;
    this.#form = new RegExp(`^${ID_FORMS[idForm]}$`);
  }

  /** The id in a copy of the base, as text; undefined if there is none. */
  idIn(base: Entry): string | undefined {
    if (this.#ids.has(base)) return this.#ids.get(base);
    const id = idAt(base.text, this.#member);
    this.#ids.set(base, id);
    return id;
  }

  isId(text: string): boolean {
    return this.#form.test(text);
  }

  /** The JSON of the item with this id, out of a page; undefined if it is not there. */
  itemIn(page: Entry, id: string): string | undefined {
    const searched = this.#items.get(page);
    if (searched?.id === id) return searched.text;
    const results = memberOf(page.text, 'results');
    const items = results ? itemsOf(page.text, results.start).map((span) => cut(page.text, span)) : [];
    const text = items.find((item) => idAt(item, 'id') === id);
    this.#items.set(page, { id, text });
    return text;
  }
}

/** An integer as it is written: `7e0` is no id. */
const DIGITS = /^\d+$/;

/**
 * The id in a member, as text. Undefined if the member is null or missing, empty if it is no id. The text is searched and
 * not parsed: a parsed number does not tell how it was written, and may be rounded.
 */
function idAt(text: string, member: string): string | undefined {
  const span = memberOf(text, member);
  const literal = span ? cut(text, span) : 'null';
  if (literal === 'null') return undefined;
  if (literal.startsWith('"')) return stringAt(literal);
  return DIGITS.test(literal) ? literal : '';
}

/** The page sizes that a client asked for, as text, by section. */
type PageSizes = ReadonlyMap<string, string>;

/** The upstream's query parameter for the size of a page. */
const PAGE_SIZE = 'page_size';

/** Which sections and fields of an overview a client asked for. */
export interface Composition {
  readonly overview: Overview;
  /** Names of the sections asked for, in the overview's order; `computed` is the last. */
  readonly wanted: readonly string[];
  /** The sections that are read: those that are wanted, and those that they depend on. */
  readonly reads: readonly SectionRead[];
  /** Any failed section fails the whole (`Prefer: handling=strict`, RFC 7240). */
  readonly strict: boolean;
  /** Names that the query lists, by parameter: `sections`, `fields[section]`. */
  readonly fields: ReadonlyMap<string, ReadonlySet<string>>;
  /** Why the request is refused, once it has been counted. */
  readonly error?: GatewayError | undefined;
}

/** How an overview is read. */
export interface Plan {
  readonly overview: Overview;
  readonly hasParameter: boolean;
  /** What the overview reads first for an account of which nothing is known. */
  readonly firstReads: readonly Read[];
  /**
   * Parses `?sections=a,b`, `?fields[section]=x,y` and `?page_size[section]=5`. `text`: the value of the path's parameter. The
   * composition's error is `validation_failed`, for an unknown section or field and for a bad size.
   */
  readonly compositionOf: (query: string, strict: boolean, text: string | undefined) => Composition;
}

const textOf = (value: unknown, fromPath: string) => (isFromPath(value) ? fromPath : String(value));

export function planOf(overview: Overview, rows: ReadRows): Plan {
  const sections = Object.entries(overview.sections).map(([name, section]) => {
    const source = sourceOf(section);
    return {
      name,
      section,
      row: rows.of(section.read),
      dependsOn: source && new DependsOn(source, section.read, rows),
    };
  });
  const readsFor = (text = '', sizes?: PageSizes) =>
    sections.map(({ name, section: { id, query: own = {}, required = false }, row, dependsOn }): SectionRead => {
      const size = sizes?.get(name);
      const sized = size === undefined ? own : { ...own, [PAGE_SIZE]: size };
      const pairs = Object.entries(sized).map(([key, value]) => [key, textOf(value, text)]);
      const query = new URLSearchParams(pairs).toString();
      const read = dependsOn ? undefined : row.read(id === undefined ? undefined : textOf(id, text), query);
      return { name, required, row, query, read, dependsOn };
    });
  const choices = choicesOf(overview);
  const wanted = sectionNames(overview);
  const whole = { overview, wanted, reads: readsFor(), fields: new Map(), strict: false };
  return {
    overview,
    hasParameter: parameterOf(overview) !== undefined,
    firstReads: readsOf(whole.reads, () => undefined),
    compositionOf(query, strict, text) {
      if (query === '' && text === undefined && !strict) return whole;
      if (query === '') return { ...whole, reads: text === undefined ? whole.reads : readsFor(text), strict };
      const { names: fields, sizes, errors } = parametersIn(query, choices);
      const sectionsAsked = fields.get('sections');
      const error = errors.length > 0 ? invalid(errors) : undefined;
      const some = wanted.filter((name) => !error && (sectionsAsked?.has(name) ?? true));
      return { overview, wanted: some, reads: neededReads(some, readsFor(text, sizes)), fields, strict, error };
    },
  };
}

/** The sections that have to be read for those that are wanted. */
function neededReads(wanted: readonly string[], reads: readonly SectionRead[]): readonly SectionRead[] {
  const needed = new Set(wanted);
  for (const { name, required } of reads) if (required && needed.has(COMPUTED)) needed.add(name);
  for (const { name, dependsOn } of reads) if (dependsOn && needed.has(name)) needed.add(dependsOn.section);
  return reads.filter(({ name }) => needed.has(name));
}

/** All reads that an overview will probably need, judging by the copies that this instance has. */
export const readsOf = (reads: readonly SectionRead[], copyOf: CopyOf): Read[] =>
  reads.flatMap((read) => {
    const { dependsOn } = read;
    if (!dependsOn) return read.read ?? [];
    const base = reads.find(({ name }) => name === dependsOn.section)?.read;
    const copy = base && copyOf(base);
    const id = copy && dependsOn.idIn(copy);
    if (copy !== undefined && id === undefined) return [];
    const { list } = dependsOn;
    const page = list && copyOf(list);
    const isInList = list && (id === undefined || page === undefined || dependsOn.itemIn(page, id) !== undefined);
    const item = id === undefined || isInList ? [] : [read.row.read(id, read.query)];
    return list ? [list, ...item] : item;
  });

/** Parameters that look like ours are refused if misspelt: ignoring them would cost calls that the client meant to save. */
const LIKE_OURS = /^(section|field|page_?size)/i;

/** Names of sections in the order in which they are answered. */
const sectionNames = ({ sections, compute }: Overview) => [...Object.keys(sections), ...(compute ? [COMPUTED] : [])];

/** Parses our parameters: the names that each lists, the sizes of pages, and the errors. */
function parametersIn(query: string, { names: choices, sized }: Choices) {
  const listed = new Map<string, Set<string>>();
  const sizes = new Map<string, string>();
  const errors: ErrorItem[] = [];
  const isUnknown = (name: string, field: string) =>
    errors.push({ code: 'unknown_name', message: `${JSON.stringify(name.slice(0, 64))} does not exist here`, field });
  for (const [parameter, value] of new URLSearchParams(query)) {
    const own = choices.get(parameter);
    const section = sized.get(parameter);
    if (section !== undefined && isSize(value)) sizes.set(section, value);
    else if (section !== undefined) errors.push({ ...BAD_SIZE, field: parameter });
    else if (!own && LIKE_OURS.test(parameter)) isUnknown(parameter, parameter);
    if (!own) continue;
    const names = value.split(',').map((name) => name.trim());
    for (const name of names) if (!own.has(name)) isUnknown(name, parameter);
    const all = listed.get(parameter) ?? new Set<string>();
    for (const name of names) all.add(name);
    listed.set(parameter, all);
  }
  return { names: listed, sizes, errors };
}

const isSize = (text: string) => /^(?:[1-9]\d?|100)$/.test(text);

const BAD_SIZE = { code: 'invalid_format', message: 'expected an integer from 1 to 100' };

interface Choices {
  /** The names that each parameter may list: sections, or the fields of one. */
  readonly names: ReadonlyMap<string, ReadonlySet<string>>;
  /** The parameters for sizes of pages, each with its section. */
  readonly sized: ReadonlyMap<string, string>;
}

/** What the query of an overview may ask for. */
export function choicesOf(overview: Overview): Choices {
  const sections = Object.entries(overview.sections);
  const fields = sections.map(([name, { read }]) => [`fields[${name}]`, documentedFields(read)] as const);
  const pages = sections.filter(([, { read }]) => read.paged && read.query && PAGE_SIZE in read.query);
  return {
    names: new Map([['sections', new Set(sectionNames(overview))], ...fields.filter(([, names]) => names.size > 0)]),
    sized: new Map(pages.map(([name]) => [`${PAGE_SIZE}[${name}]`, name])),
  };
}

/** The documented fields of an operation's answer, or of its items if it is a list. */
const documentedFields = ({ answer }: Operation): ReadonlySet<string> => new Set(Object.keys(shapeOf(answer)));

function shapeOf(answer: core.$ZodType | null | undefined): core.$ZodShape {
  const def = (answer as core.$ZodTypes | null | undefined)?._zod.def;
  if (def?.type === 'array') return shapeOf(def.element);
  if (def?.type !== 'object') return {};
  return def.shape['results'] ? shapeOf(def.shape['results']) : def.shape;
}
