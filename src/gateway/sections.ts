import type * as z from 'zod/mini';
import { ID_FORMS, type Operation } from '../upstream/operation.ts';

/** The text of the parameter in the overview's path. */
export interface FromPath {
  readonly from: 'path';
}

export const fromPath: FromPath = { from: 'path' };

/** The id that another section names. */
export interface From<Name extends string = string> {
  readonly from: 'section';
  readonly section: Name;
  /** The member of its JSON. */
  readonly member: string;
  /** A page in which the item will probably be. */
  readonly list?: Operation;
}

/**
 * The id is what a member of an earlier section's JSON says; where that is null, there is nothing to read, which is no
 * error. `list`: read at the same time as that section, so that the item need not be asked for after it.
 */
export const from = <const Name extends string>(section: Name, member: string, list?: Operation): From<Name> => ({
  from: 'section',
  section,
  member,
  ...(list && { list }),
});

type QueryValue = string | number | boolean | FromPath;

/** One read of the upstream. */
export interface Section {
  /** A row, which is a GET. The gateway reads the row of that name in its own table. */
  readonly read: Operation;
  /** Where the row's path has an `{id}`. */
  readonly id?: string | FromPath | From;
  readonly query?: Readonly<Record<string, QueryValue>>;
  /** Its failure fails the whole. */
  readonly required?: true;
}

export type Sections = Readonly<Record<string, Section>>;

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  /** It may have one parameter, such as `:id`. */
  readonly path: `/bff/v1/${string}`;
  readonly summary: string;
  /** In the order in which they are answered. */
  readonly sections: Sections;
  /** Makes the section `computed` of the others. An input that failed, or that nobody asked for, is null. */
  readonly compute?: ((inputs: Readonly<Record<string, unknown>>) => unknown) | undefined;
  /** What that looks like, for the OpenAPI document. */
  readonly computed?: z.ZodMiniType | undefined;
}

/** The name of what the function of an overview makes. */
export const COMPUTED = 'computed';

export const isFromPath = (value: unknown): value is FromPath => fromOf(value) === 'path';

export const linkOf = ({ id }: Section): From | undefined =>
  typeof id === 'object' && id.from === 'section' ? id : undefined;

const fromOf = (value: unknown) => typeof value === 'object' && value !== null && 'from' in value && value.from;

/** The parameter of its path, if it has one, and the pattern of what that may be: what all that it is the id of take. */
export function parameterOf({
  path,
  sections,
}: Overview): { readonly name: string; readonly form: string } | undefined {
  const name = path.split('/:')[1]?.split('/')[0];
  if (name === undefined) return undefined;
  const named = Object.values(sections).filter(({ id }) => isFromPath(id));
  const isSlug = named.length > 0 && named.every(({ read }) => read.idForm === 'slug');
  return { name, form: ID_FORMS[isSlug ? 'slug' : 'digits'] };
}
