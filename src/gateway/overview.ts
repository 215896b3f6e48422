import * as z from 'zod/mini';
import { GatewayError } from '../core/errors.ts';
import { checkInput } from '../upstream/input.ts';
import { groupIn, ID_FORMS, type Operation } from '../upstream/operation.ts';
import type { Table } from '../upstream/table.ts';

/** Stands for the text of the parameter in the overview's path. */
export interface FromPath {
  readonly from: 'path';
}

export const fromPath: FromPath = { from: 'path' };

/** Stands for the id that another section names. */
export interface From<Name extends string = string> {
  readonly from: 'section';
  readonly section: Name;
  /** The member of the section's JSON that is the id. */
  readonly member: string;
  /** The read of a page in which the item will probably be. */
  readonly list?: Operation;
}

/**
 * Takes the id from a member of an earlier section's JSON. If the member is null, there is nothing to read, which is no
 * error. `list`: a page that is read at the same time as that section, so that its item need not be asked for afterwards.
 */
export const from = <const Name extends string>(section: Name, member: string, list?: Operation): From<Name> => ({
  from: 'section',
  section,
  member,
  ...(list && { list }),
});

/** One read of the upstream. */
export interface Section {
  /** A row, which is a GET. The gateway reads the row of that name in its own table. */
  readonly read: Operation;
  /** Where the row's path has an `{id}`. */
  readonly id?: string | FromPath | From;
  readonly query?: Readonly<Record<string, string | number | boolean | FromPath>>;
  /** The failure of this section fails the whole. */
  readonly required?: true;
}

export type Sections = Readonly<Record<string, Section>>;

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  /** It may have one parameter, such as `:id`. */
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

/** The section that names the id of this one; undefined where the id is given. */
export const sourceOf = ({ id }: Section): From | undefined =>
  typeof id === 'object' && id.from === 'section' ? id : undefined;

/** The parameter of an overview's path, if it has one, and the pattern of an id that all reads with that id take. */
export function parameterOf({
  path,
  sections,
}: Overview): { readonly name: string; readonly form: string } | undefined {
  const [, name] = /:(\w+)/.exec(path) ?? [];
  if (name === undefined) return undefined;
  const named = Object.values(sections).filter(({ id }) => isFromPath(id));
  const isSlug = named.length > 0 && named.every(({ read }) => read.idForm === 'slug');
  return { name, form: ID_FORMS[isSlug ? 'slug' : 'digits'] };
}

/** Only a section of the same overview can name the id of another one. No section has other members than `Section`. */
type Checked<All> = {
  readonly [K in keyof All]: { readonly id?: string | FromPath | From<Exclude<keyof All, K> & string> } & Readonly<
    Record<Exclude<keyof All[K], keyof Section>, never>
  >;
};

type AnswerOf<One> = One extends { readonly read: { readonly answer: infer Answer } } ? z.output<Answer> : unknown;

/** The sections as a function gets them. A section is null if it is not required, or its id comes from another section. */
type Inputs<All> = {
  readonly [K in keyof All]: All[K] extends { readonly required: true; readonly id?: string | FromPath }
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
      .replace(PARAMETER, '')
      .match(/\w+/g) ?? [];
  const { id = `get${words.map(capital).join('')}`, summary = capital(words.join(' ')), computed } = about;
  const made = { id, path, summary, sections, compute: compute as Overview['compute'], computed };
  check(made);
  return made;
}

const PARAMETER = /:\w+/;

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
  const paths = resolved.map(({ path }) => path.replace(PARAMETER, ':'));
  const twice = resolved.find((one, at) => paths.indexOf(one.path.replace(PARAMETER, ':')) < at);
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
    const source = sourceOf(section);
    const id = source?.list ? { ...source, list: rowOf(source.list) } : section.id;
    return [name, { ...section, read: rowOf(section.read), ...(id !== undefined && { id }) }];
  });
  return { ...one, sections: Object.fromEntries(sections) };
}

/** An item that is found in a list is as old as the list, so a write that changes the item has to invalidate the list too. */
function checkLists(one: Overview, operations: readonly Operation[]): void {
  for (const [name, section] of Object.entries(one.sections)) {
    const list = sourceOf(section)?.list;
    const { group } = section.read;
    if (list?.group === undefined || group === undefined) continue;
    const write = operations.find(
      ({ invalidates = [] }) =>
        invalidates.some((named) => groupIn(named) === group) &&
        !invalidates.some((named) => named === list.group || named === 'everything'),
    );
    if (write)
      refuse(one, `looks for \`${name}\` in \`${list.id}\`, which \`${write.id}\` does not invalidate with its item`);
  }
}

function refuse({ path }: Overview, problem: string): never {
  throw new TypeError(`the overview \`${path}\` ${problem}`);
}

const PART = String.raw`/(?!\.{1,2}(?:/|$))[\w.~-]+`;

/** The first part is no parameter: it might be mistaken for one of Portico's own paths. */
const PATH = new RegExp(String.raw`^/bff/v1(?:${PART})+(?:/:[a-zA-Z]\w*(?:${PART})*)?$`);

const NAME = /^[a-zA-Z]\w{0,63}$/;

function check(one: Overview): void {
  const { id, path, sections, compute, computed } = one;
  const values = Object.values(sections);
  const isTaken = values.some((section) => [section.id, ...Object.values(section.query ?? {})].some(isFromPath));
  const hasParameter = path.includes(':');
  if (!PATH.test(path))
    refuse(one, 'is not at a path such as `/bff/v1/inbox-overview`, with one parameter behind that at most');
  if (/^\/bff\/v1\/(batch|outcome|session)(\/|$)/.test(path)) refuse(one, 'is at a path that Portico has itself');
  if (!NAME.test(id)) refuse(one, 'needs an id of letters, digits and _');
  if (values.length === 0) refuse(one, 'has no sections');
  if (computed !== undefined && !compute) refuse(one, 'says what is computed, and has no function');
  if (isTaken && !hasParameter) refuse(one, 'has a section that wants a parameter, and none in its path');
  if (hasParameter && !isTaken) refuse(one, 'has a parameter in its path that no section takes');
  for (const [name, section] of Object.entries(sections))
    checkSection(name, section, sections, (problem) => refuse(one, `has a section \`${name}\` that ${problem}`));
}

type Refuse = (problem: string) => never;

function checkSection(name: string, section: Section, sections: Sections, refused: Refuse): void {
  const { read, id } = section;
  if (!NAME.test(name)) refused('needs a name of letters, digits and _');
  if (name === COMPUTED) refused('has the name of what a function computes');
  checkRead(read, refused);
  if (read.idForm === undefined && id !== undefined) refused(`gives \`${read.id}\` an id, which it takes none of`);
  if (read.idForm !== undefined && id === undefined)
    refused(`gives \`${read.id}\` no id, without which it has no path`);
  if (read.idForm !== undefined && typeof id === 'string' && !new RegExp(`^${ID_FORMS[read.idForm]}$`).test(id))
    refused(`gives \`${read.id}\` an id that is not of its form`);
  const source = sourceOf(section);
  const before = Object.entries(sections).slice(0, Object.keys(sections).indexOf(name));
  if (source) checkSource(source, new Map(before).get(source.section), refused);
  checkQuery(section, refused);
}

function checkRead({ id, method, answer }: Operation, refused: Refuse): void {
  if (method !== 'GET') refused(`reads \`${id}\`, which is no GET`);
  if (answer === null) refused(`reads \`${id}\`, which has no answer`);
}

function checkSource({ section, member, list }: From, base: Section | undefined, refused: Refuse): void {
  if (!base) return refused(`has its id from \`${section}\`, which is no section before it`);
  if (sourceOf(base)) refused(`has its id from \`${section}\`, which has its own from another section`);
  const { answer, id } = base.read;
  if (answer instanceof z.ZodMiniObject && !Object.hasOwn(answer.shape, member))
    refused(`has its id from \`${member}\` of \`${section}\`, which an answer of \`${id}\` does not have`);
  if (!list) return;
  checkRead(list, refused);
  if (list.idForm !== undefined) refused(`looks in \`${list.id}\`, which needs an id`);
  if (!list.paged) refused(`looks in \`${list.id}\`, which is no page`);
}

/** Checks the query as far as it is given. The parameter of the path is checked when a client asks. */
function checkQuery({ read, query = {} }: Section, refused: Refuse): void {
  const known = Object.entries(query).flatMap(([key, value]) => (isFromPath(value) ? [] : [[key, String(value)]]));
  try {
    checkInput(read, { query: new URLSearchParams(known).toString() });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const [first] = error.particulars.errors ?? [];
    refused(`asks \`${read.id}\` for a \`${first?.field}\` that it does not take: ${first?.message}`);
  }
}
