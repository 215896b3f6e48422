import type { ErrorItem, GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { Entry } from '../store/port.ts';
import { fitsQuery, invalid } from '../upstream/input.ts';
import { itemOf, itemsAt, type Page, shapeOf } from '../upstream/page.ts';
import { formOf, joined } from '../upstream/path.ts';
import type { Read, ReadRows } from '../upstream/read.ts';
import type { CopyOf } from './admission.ts';
import {
  COMPUTED,
  type From,
  isFrom,
  isFromPath,
  type Overview,
  parametersOf,
  type Section,
  sourcesOf,
} from './overview.ts';

/** How a section is read. */
export interface SectionRead {
  readonly name: string;
  readonly required: boolean;
  /** Undefined where it takes something from another section. */
  readonly read: Read | undefined;
  /** `values`: what it takes from another section. */
  readonly readWith: (values: Values) => Read;
  /** The read of the page in which the item will probably be. */
  readonly list: Read | undefined;
  readonly dependsOn: DependsOn | undefined;
}

/** Members of a section's JSON, as text. */
export type Values = Readonly<Record<string, string>>;

/** What a section takes from another one, its base. A copy never changes, so each copy is searched once. */
export class DependsOn {
  /** The name of the base. */
  readonly section: string;
  /** The members that are taken, each with what it has to be. */
  readonly #taken: readonly { readonly member: string; readonly form: Pick<RegExp, 'test'> }[];
  /** The member that is the id of an item of the page. */
  readonly #id: string;
  readonly #page: Page | undefined;
  readonly #values = new WeakMap<Entry, Values | null>();
  readonly #items = new WeakMap<Entry, { readonly id: string | undefined; readonly text: string | undefined }>();

  constructor({ section, member, list }: From, { read, params = {}, query = {} }: Section) {
    const ofPath = Object.entries(read.params).map(([name, form]) => ({ value: params[name], form: formOf(form) }));
    const ofQuery = Object.entries(query).map(([name, value]) => ({
      value,
      form: { test: (text: string) => text !== '' && fitsQuery(read, name, text) },
    }));
    const places = [...ofPath, ...ofQuery];
    this.section = section;
    this.#taken = places.flatMap(({ value, form }) => (isFrom(value) ? { member: value.member, form } : []));
    this.#id = member;
    this.#page = list?.page;
  }

  /** The values in a copy of the base; null if one of them is null or missing. */
  valuesIn(base: Entry): Values | null {
    let values = this.#values.get(base);
    if (values !== undefined) return values;
    const texts = this.#taken.map(({ member }) => [member, textAt(base.text, member)] as const);
    values = texts.some(([, text]) => text === undefined) ? null : (Object.fromEntries(texts) as Values);
    this.#values.set(base, values);
    return values;
  }

  /** Whether a path and a query may have these values. */
  areUsable(values: Values): boolean {
    return this.#taken.every(({ member, form }) => form.test(values[member] ?? ''));
  }

  /** The JSON of the item with the id among these values, out of a page; undefined if it is not there. */
  itemIn(page: Entry, values: Values): string | undefined {
    const id = values[this.#id];
    const searched = this.#items.get(page);
    if (searched?.id === id) return searched?.text;
    const list = this.#page && itemsAt(page.text, this.#page);
    const items = list ? itemsOf(page.text, list.start).map((span) => cut(page.text, span)) : [];
    const text = items.find((item) => textAt(item, 'id') === id);
    this.#items.set(page, { id, text });
    return text;
  }
}

/** An integer, a decimal or a flag as it is written: `7e0` is none. */
const SCALAR = /^(?:-?\d+(?:\.\d+)?|true|false)$/;

/**
 * The text of a member. Undefined if the member is null or missing, empty if it is no scalar. The text is searched and not
 * parsed: a parsed number does not tell how it was written, and may be rounded.
 */
function textAt(text: string, member: string): string | undefined {
  const span = memberOf(text, member);
  const literal = span ? cut(text, span) : 'null';
  if (literal === 'null') return undefined;
  if (literal.startsWith('"')) return stringAt(literal);
  return SCALAR.test(literal) ? literal : '';
}

/** The page sizes that a client asked for, as text, by section. */
type PageSizes = ReadonlyMap<string, string>;

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
  /** Whether the path has parameters. */
  readonly hasParameters: boolean;
  /** What the overview reads first for an account of which nothing is known. */
  readonly firstReads: readonly Read[];
  /**
   * Parses `?sections=a,b`, `?fields[section]=x,y` and `?page_size[section]=5`. `path`: the values of the path's parameters. The
   * composition's error is `validation_failed`, for an unknown section or field and for a bad size.
   */
  readonly compositionOf: (query: string, strict: boolean, path: Values | undefined) => Composition;
}

/** The text of a value. `path`: the parameters of the overview's path; `base`: the members of the section that it takes from. */
function textOf(value: unknown, path: Values, base: Values): string {
  if (isFromPath(value)) return path[value.name] ?? '';
  return isFrom(value) ? (base[value.member] ?? '') : String(value);
}

const NONE: Values = {};

/** Makes the reads of a section. `size`: of its page. */
function readOf(name: string, section: Section, rows: ReadRows) {
  const { read, params = {}, query = {}, required = false } = section;
  const row = rows.of(read);
  const names = Object.keys(read.params);
  const [source] = sourcesOf(section);
  const listed = source?.list && rows.of(source.list);
  const listNames = Object.keys(source?.list?.params ?? {});
  const dependsOn = source && new DependsOn(source, section);
  return (path: Values, size: string | undefined): SectionRead => {
    const sized = size === undefined ? query : { ...query, [read.page?.size ?? '']: size };
    const idOf = (of: readonly string[], base: Values) => joined(of, (one) => textOf(params[one], path, base));
    const readWith = (base: Values) => {
      const pairs = Object.entries(sized).map(([key, value]) => [key, textOf(value, path, base)]);
      return row.read(idOf(names, base), new URLSearchParams(pairs).toString());
    };
    const list = listed?.read(idOf(listNames, NONE), '');
    return { name, required, read: dependsOn ? undefined : readWith(NONE), readWith, list, dependsOn };
  };
}

export function planOf(overview: Overview, rows: ReadRows): Plan {
  const sections = Object.entries(overview.sections).map(
    ([name, section]) => [name, readOf(name, section, rows)] as const,
  );
  const readsFor = (path = NONE, sizes?: PageSizes) => sections.map(([name, read]) => read(path, sizes?.get(name)));
  const choices = choicesOf(overview);
  const wanted = sectionNames(overview);
  const whole = { overview, wanted, reads: readsFor(), fields: new Map(), strict: false };
  return {
    overview,
    hasParameters: parametersOf(overview).length > 0,
    firstReads: readsOf(whole.reads, () => undefined),
    compositionOf(query, strict, path) {
      if (query === '' && path === undefined && !strict) return whole;
      if (query === '') return { ...whole, reads: path === undefined ? whole.reads : readsFor(path), strict };
      const { names: fields, sizes, errors } = parametersIn(query, choices);
      const sectionsAsked = fields.get('sections');
      const error = errors.length > 0 ? invalid(errors) : undefined;
      const some = wanted.filter((name) => !error && (sectionsAsked?.has(name) ?? true));
      return { overview, wanted: some, reads: neededReads(some, readsFor(path, sizes)), fields, strict, error };
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
    const values = copy && dependsOn.valuesIn(copy);
    if (values === null) return [];
    const { list } = read;
    const page = list && copyOf(list);
    const isInList = list && (!values || page === undefined || dependsOn.itemIn(page, values) !== undefined);
    const item = !values || isInList ? [] : [read.readWith(values)];
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
  const fields = sections.map(([name, { read }]) => {
    const shape = shapeOf(itemOf(read.answer, read.page)); // of the items, if it is a list
    return [`fields[${name}]`, new Set(Object.keys(shape))] as const;
  });
  const pages = sections.filter(
    ([, { read }]) => read.page?.size !== undefined && read.page.size in (read.query ?? {}),
  );
  return {
    names: new Map([['sections', new Set(sectionNames(overview))], ...fields.filter(([, names]) => names.size > 0)]),
    sized: new Map(pages.map(([name]) => [`page_size[${name}]`, name])),
  };
}
