import * as z from 'zod/mini';
import { GatewayError } from '../core/errors.ts';
import { checkInput } from '../upstream/input.ts';
import { groupIn, type Operation, type ParamsOf } from '../upstream/operation.ts';
import { type Form, formOf } from '../upstream/path.ts';
import type { Table } from '../upstream/table.ts';

/** Stands for the text of a parameter in the overview's path. */
export interface FromPath {
  readonly from: 'path';
  readonly name: string;
}

export const fromPath = (name: string): FromPath => ({ from: 'path', name });

/** Stands for a value that another section names. */
export interface From<Name extends string = string> {
  readonly from: 'section';
  readonly section: Name;
  /** The member of the section's JSON that is the value. */
  readonly member: string;
  /** The read of a page in which the item will probably be. */
  readonly list?: Operation;
}

/**
 * Takes a parameter from a member of an earlier section's JSON. If the member is null, there is nothing to read, which is no
 * error. `list`: a page that is read at the same time as that section, so that its item with that `id` need not be asked for
 * afterwards. Parameters of the list's path are those of the section.
 */
export const from = <const Name extends string>(section: Name, member: string, list?: Operation): From<Name> => ({
  from: 'section',
  section,
  member,
  ...(list && { list }),
});

type Value = string | FromPath | From;

/** One read of the upstream. */
export interface Section {
  /** A row, which is a GET. The gateway reads the row of that name in its own table. */
  readonly read: Operation;
  /** A value for each parameter of the row's path. */
  readonly params?: Readonly<Record<string, Value>>;
  readonly query?: Readonly<Record<string, Value | number | boolean>>;
  /** The failure of this section fails the whole. */
  readonly required?: true;
}

export type Sections = Readonly<Record<string, Section>>;

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  /** It may have parameters, such as `:id`. */
  readonly path: `/bff/v1/${string}`;
  readonly summary: string;
  /** Sections in the order in which they are answered. */
  readonly sections: Sections;
  /** Makes the section `computed` of the others. An input that failed, or that nobody asked for, is null. */
  readonly compute?: ((inputs: Readonly<Record<string, unknown>>) => unknown) | undefined;
  /** The schema of `computed`, for the OpenAPI document. */
  readonly computed?: z.ZodMiniType | undefined;
}

/** The name of the section that an overview's function makes. */
export const COMPUTED = 'computed';

export const isFromPath = (value: unknown): value is FromPath =>
  (value as Partial<FromPath> | null | undefined)?.from === 'path';

export const isFrom = (value: unknown): value is From =>
  (value as Partial<From> | null | undefined)?.from === 'section';

/** All values that a section is read with. */
const valuesOf = ({ params = {}, query = {} }: Section) => [...Object.values(params), ...Object.values(query)];

/** What a section takes from others; the one with a list comes first. */
export const sourcesOf = (section: Section): readonly From[] => valuesOf(section).filter(isFrom).toSorted(listFirst);

const listFirst = (a: From, b: From) => Number(!a.list) - Number(!b.list);

/** All rows that an overview reads, with the lists in which it looks for items. */
export const rowsReadBy = ({ sections }: Overview): readonly Operation[] =>
  Object.values(sections).flatMap((section) => [section.read, ...sourcesOf(section).flatMap(({ list }) => list ?? [])]);

/** A parameter of an overview's path. */
interface Parameter {
  readonly name: string;
  /** The forms that it has to have: of each parameter of a row for which it stands. */
  readonly forms: readonly [Form, ...Form[]];
  /** The first row's, and the name there. */
  readonly read: Operation | undefined;
  readonly own: string;
}

export function parametersOf({ path, sections }: Overview): readonly Parameter[] {
  return namesAt(path).map((name) => {
    const places = Object.values(sections).flatMap(({ read, params = {} }) =>
      Object.entries(read.params).flatMap(([own, form]) => (isOfPath(params[own], name) ? { read, own, form } : [])),
    );
    const [first = 'digits', ...others] = new Set(places.map(({ form }) => form));
    const { read, own = name } = places[0] ?? {};
    return { name, forms: [first, ...others], read, own };
  });
}

const namesAt = (path: string): readonly string[] => Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => name);

const isOfPath = (value: unknown, name: string) => isFromPath(value) && value.name === name;

/** A section names all parameters of its row, and takes from sections of the same overview. It has no other members than `Section`. */
type Checked<All> = {
  readonly [K in keyof All]: Params<All[K], string | FromPath | From<Exclude<keyof All, K> & string>> & {
    readonly query?: Readonly<Record<string, Scalar | FromPath | From<Exclude<keyof All, K> & string>>>;
  } & Readonly<Record<Exclude<keyof All[K], keyof Section>, never>>;
};

type Scalar = string | number | boolean;

type Params<One, Of> = One extends { readonly read: infer Read extends Operation } ? ParamsOf<Read, Of> : unknown;

type AnswerOf<One> = One extends { readonly read: { readonly answer: infer Answer } } ? z.output<Answer> : unknown;

/** The sections as a function gets them. A section is null if it is not required, or takes something from another section. */
type Inputs<All> = {
  readonly [K in keyof All]: All[K] extends {
    readonly required: true;
    readonly params?: Readonly<Record<string, string | FromPath>>;
    readonly query?: Readonly<Record<string, Scalar | FromPath>>;
  }
    ? AnswerOf<All[K]>
    : AnswerOf<All[K]> | null;
};

/** What a function may return: no promise, since nobody would wait for it. */
type Result = string | number | boolean | null | (object & { readonly then?: never });

interface About {
  /** The `operationId`. By default it is made of the path: `getInboxOverview` of `/bff/v1/inbox-overview`. */
  readonly id?: string;
  /** By default the path in words. */
  readonly summary?: string;
  /** What the function gives, for the OpenAPI document. */
  readonly computed?: z.ZodMiniType;
}

/**
 * Several reads in one answer. `compute` makes a section of its own, `computed`, of the others, which it gets as
 * `JSON.parse` makes them.
 * @throws TypeError in words for what an overview cannot be
 */
export function overview<const All extends Sections>(
  path: `/bff/v1/${string}`,
  sections: All & Checked<All>,
  compute?: (inputs: Inputs<All>) => Result,
  about: About = {},
): Overview {
  const words =
    path
      .replace(/^\/bff\/v1/, '')
      .replaceAll(PARAMETER, '')
      .match(/\w+/g) ?? [];
  const { id = `get${words.map(capital).join('')}`, summary = capital(words.join(' ')), computed } = about;
  const made = { id, path, summary, sections, compute: compute as Overview['compute'], computed };
  check(made);
  return made;
}

const PARAMETER = /:\w+/g;

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/**
 * The overviews of a gateway. Each row is the one that has its name in the gateway's own table, which may have another in
 * the place of the one that the overview was made with.
 * @throws TypeError in words for what cannot be
 */
export function overviewsIn({ operations }: Table, overviews: readonly Overview[]): readonly Overview[] {
  const rows = new Map(operations.map((row) => [row.id, row]));
  const resolved = overviews.map((one) => withRows(one, rows));
  resolved.forEach(check);
  for (const one of resolved) checkLists(one, operations);
  const paths = resolved.map(({ path }) => path.replaceAll(PARAMETER, ':'));
  const twice = resolved.find((_, at) => paths.indexOf(paths[at] ?? '') < at);
  if (twice) refuse(twice, 'is at the path of another overview');
  const ids = [...rows.keys(), ...resolved.map(({ id }) => id)];
  const same = resolved.find(({ id }) => ids.indexOf(id) < ids.lastIndexOf(id));
  if (same) refuse(same, `has the id \`${same.id}\`, which a row or another overview has: give it one of its own`);
  return resolved;
}

function withRows(one: Overview, rows: ReadonlyMap<string, Operation>): Overview {
  const rowOf = ({ id }: Operation) =>
    rows.get(id) ?? refuse(one, `reads \`${id}\`, which is not among the rows of the gateway`);
  const sections = Object.entries(one.sections).map(([name, section]): [string, Section] => {
    const params = Object.entries(section.params ?? {}).map(([own, value]) => [
      own,
      isFrom(value) && value.list ? { ...value, list: rowOf(value.list) } : value,
    ]);
    return [
      name,
      { ...section, read: rowOf(section.read), params: Object.fromEntries(params) as Record<string, Value> },
    ];
  });
  return { ...one, sections: Object.fromEntries(sections) };
}

/** An item that is found in a list is as old as the list, so a write that changes the item has to invalidate the list too. */
function checkLists(one: Overview, operations: readonly Operation[]): void {
  for (const [name, section] of Object.entries(one.sections)) {
    const list = sourcesOf(section)[0]?.list;
    const { group } = section.read;
    if (list?.group === undefined || group === undefined) continue;
    const write = operations.find(
      ({ invalidates = [] }) =>
        invalidates.some((named) => groupIn(named) === group) &&
        !invalidates.some((named) => named === 'everything' || isOfList(named, list)),
    );
    if (write)
      refuse(one, `looks for \`${name}\` in \`${list.id}\`, which \`${write.id}\` does not invalidate with its item`);
  }
}

/** An item that has parameters of the list's path is invalidated together with that list. */
const isOfList = (named: string | { readonly item: string }, { group, params }: Operation) =>
  typeof named === 'string' ? named === group : named.item === group && Object.keys(params).length > 0;

function refuse({ path }: Overview, problem: string): never {
  throw new TypeError(`the overview \`${path}\` ${problem}`);
}

const PART = String.raw`/(?!\.{1,2}(?:/|$))[\w.~-]+`;

/** The first part is no parameter: it might be mistaken for one of Portico's own paths. */
const PATH = new RegExp(String.raw`^/bff/v1${PART}(?:${PART}|/:[a-zA-Z]\w*)*$`);

const NAME = /^[a-zA-Z]\w{0,63}$/;

function check(one: Overview): void {
  const { id, path, sections, compute, computed } = one;
  const names = namesAt(path);
  const values = Object.values(sections).flatMap(valuesOf);
  const strange = values.find((value) => isFromPath(value) && !names.includes(value.name)) as FromPath | undefined;
  const unused = names.find((name) => !values.some((value) => isOfPath(value, name)));
  if (!PATH.test(path) || new Set(names).size < names.length)
    refuse(one, 'is not at a path such as `/bff/v1/inbox-overview`, with parameters behind that if it has any');
  if (/^\/bff\/v1\/(batch|outcome|session)(\/|$)/.test(path)) refuse(one, 'is at a path that Portico has itself');
  if (!NAME.test(id)) refuse(one, 'needs an id of letters, digits and _');
  if (Object.keys(sections).length === 0) refuse(one, 'has no sections');
  if (computed !== undefined && !compute) refuse(one, 'says what is computed, and has no function');
  if (strange) refuse(one, `has a section that wants a parameter \`${strange.name}\`, which is not in its path`);
  if (unused !== undefined) refuse(one, `has a parameter \`${unused}\` in its path that no section takes`);
  for (const [name, section] of Object.entries(sections))
    checkSection(name, section, sections, (problem) => refuse(one, `has a section \`${name}\` that ${problem}`));
}

type Refuse = (problem: string) => never;

function checkSection(name: string, section: Section, sections: Sections, refused: Refuse): void {
  const { read } = section;
  if (!NAME.test(name)) refused('needs a name of letters, digits and _');
  if (name === COMPUTED) refused('has the name of what a function computes');
  checkRead(read, refused);
  checkParams(section, refused);
  const sources = sourcesOf(section);
  const before = Object.entries(sections).slice(0, Object.keys(sections).indexOf(name));
  for (const source of sources) checkSource(source, new Map(before).get(source.section), refused);
  if (new Set(sources.map((one) => one.section)).size > 1) refused('takes from two sections: one at most');
  checkList(section, sources, refused);
  checkQuery(section, refused);
}

function checkParams({ read, params = {} }: Section, refused: Refuse): void {
  const strange = Object.keys(params).find((name) => !Object.hasOwn(read.params, name));
  if (strange !== undefined) refused(`gives \`${read.id}\` a \`${strange}\`, which its path does not have`);
  for (const [name, form] of Object.entries(read.params)) {
    const value = params[name];
    if (value === undefined) refused(`gives \`${read.id}\` no \`${name}\`, without which it has no path`);
    if (typeof value === 'string' && !formOf(form).test(value))
      refused(`gives \`${read.id}\` a \`${name}\` that is not of its form`);
  }
}

function checkRead({ id, method, answer }: Operation, refused: Refuse): void {
  if (method !== 'GET') refused(`reads \`${id}\`, which is no GET`);
  if (answer === null) refused(`reads \`${id}\`, which has no answer`);
}

function checkSource({ section, member }: From, base: Section | undefined, refused: Refuse): void {
  if (!base) return refused(`takes from \`${section}\`, which is no section before it`);
  if (sourcesOf(base).length > 0) refused(`takes from \`${section}\`, which itself takes from another section`);
  const { answer, id } = base.read;
  if (answer instanceof z.ZodMiniObject && !Object.hasOwn(answer.shape, member))
    refused(`takes \`${member}\` of \`${section}\`, which an answer of \`${id}\` does not have`);
}

function checkList({ params = {}, query = {} }: Section, [source, other]: readonly From[], refused: Refuse): void {
  const list = source?.list;
  if (!list) return;
  checkRead(list, refused);
  if (other?.list || Object.values(query).includes(source)) refused('may look for one parameter of its path in a list');
  if (!list.page) refused(`looks in \`${list.id}\`, which is no page`);
  const missing = Object.keys(list.params).find((name) => params[name] === undefined || isFrom(params[name]));
  const own = Object.keys(params).find((name) => params[name] !== source && !Object.hasOwn(list.params, name));
  if (own !== undefined) refused(`looks in \`${list.id}\`, which has items of any \`${own}\``);
  if (missing !== undefined) refused(`looks in \`${list.id}\`, which needs a \`${missing}\``);
}

/** Checks the query as far as it is given. What comes from a path or a section is checked when a client asks. */
function checkQuery({ read, query = {} }: Section, refused: Refuse): void {
  const known = Object.entries(query).flatMap(([key, value]) =>
    typeof value === 'object' ? [] : [[key, String(value)]],
  );
  try {
    checkInput(read, { query: new URLSearchParams(known).toString() });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const [first] = error.particulars.errors ?? [];
    refused(`asks \`${read.id}\` for a \`${first?.field}\` that it does not take: ${first?.message}`);
  }
}
