import type * as z from 'zod/mini';
import { type ErrorKind, isCode } from '../core/errors.ts';
import type { Page } from './page.ts';
import { isForm, namesIn, type Params, paramsOf, partsOf } from './path.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** How long an answer is served from the cache, in seconds (`contract.md` section 5). */
export interface CachePolicy {
  readonly fresh: number;
  /** How long after `fresh` it is served while it is refreshed. */
  readonly stale: number;
  /** How long after `fresh` it is served while the upstream fails. */
  readonly onError: number;
}

/**
 * What a write invalidates: a group, the item of a group that the path names, or everything of the account. A path names an
 * item by its values: `{ item: 'members' }` of `/orgs/{org}/members/{id}` is what the group has at the same `org` and `id`,
 * and at the same `org` alone, such as its list.
 */
type Invalidated<Group extends string> = 'everything' | Group | { readonly item: Group };

/** A chapter of the OpenAPI document. */
export interface Tag {
  readonly name: string;
  readonly description: string;
}

/** A code that the upstream refuses with, and the words of its problem. By default the title is the code in words. */
export type Refusal = ErrorKind;

/** All that is known of one endpoint of the upstream. */
export interface Row {
  /** Method and path, with parameters such as `{id}`. Clients may leave out the last slash or add one; the path is sent as it stands here. */
  readonly at: `${Method} /${string}`;
  /**
   * The form of each parameter of the path: `digits` (1 to 19, the default), `slug` (1 to 64 letters, digits, `_` and `-`),
   * `uuid`, or `name` (1 to 128 letters, digits, `.`, `_`, `~` and `-`). Any other value is an unknown endpoint.
   */
  readonly params?: Params;
  /** `none`: it takes no credential, and never forwards one. Its requests are counted by the client's address. */
  readonly credential?: 'none';
  /**
   * Documented query parameters, checked as text. A `z.array` of texts is a list: `a,b`, or with `explode: true` in
   * `documented` a parameter for each. Others are passed on.
   */
  readonly query?: Readonly<Record<string, z.ZodMiniType<unknown, string | string[]>>>;
  /** JSON body. `optional`: it may be empty. */
  readonly body?: { readonly schema: z.ZodMiniType; readonly optional?: true };
  /** Schema of a good answer; `null` for 204. */
  readonly answer: z.ZodMiniType | null;
  /** The answer is a page of a list. */
  readonly page?: Page;
  /**
   * Reads only. Reads of one group are invalidated together. Also for reads that are not cached: after a write that invalidates
   * the group, they share no call with reads from before it.
   */
  readonly group?: string;
  /** Reads only. Without it they are never cached. */
  readonly cache?: CachePolicy;
  /** Only for reads that are never cached. The answer changes by itself: it has an ETag, and clients may wait for a change. */
  readonly polled?: true;
  /** Writes only. */
  readonly invalidates?: readonly Invalidated<string>[];
  /** Writes only. While one is under way, an equal one of the same account is refused. */
  readonly exclusive?: true;
  /** Writes only. Members of the body that are ignored when two are compared. */
  readonly notCompared?: ReadonlySet<string>;
  /** Fields of the answer or the body that are secrets: an answer with one is never cached. */
  readonly secrets?: readonly string[];
  /** The member `token` of the answer is a credential: `POST /bff/v1/session/<as>` begins a browser's session with it. */
  readonly signsIn?: { readonly as: string; readonly token: string };
  /** The upstream's own codes, with which it may refuse this call. */
  readonly refusals?: Readonly<Record<string, Refusal>>;
  /** By default `Upstream`. */
  readonly tag?: Tag;
  /** By default the name in words. */
  readonly summary?: string;
  readonly description?: string;
}

/** A row with its name, which is also its `operationId`, log field, policy key and test title. */
export interface Operation extends Omit<Row, 'summary' | 'tag'> {
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly method: Method;
  readonly path: string;
  /** What is between the parameters of the path. */
  readonly parts: readonly string[];
  /** All parameters of the path, in its order. */
  readonly params: Params;
}

/** The names of the parameters of a row's path. */
type ParamOf<O extends Pick<Row, 'at'>> = Row['at'] extends O['at'] ? string : NameIn<O['at']>;

/** What calls an operation: a value for each parameter of its path. */
export type ParamsOf<O extends Pick<Row, 'at'>, Value> = [ParamOf<O>] extends [never]
  ? { readonly params?: never }
  : string extends ParamOf<O>
    ? { readonly params?: Readonly<Record<string, Value>> }
    : { readonly params: { readonly [Name in ParamOf<O>]: Value } };

type NameIn<At extends string> = At extends `${string}{${infer Name}}${infer Rest}` ? Name | NameIn<Rest> : never;

/** The JSON of a good answer. */
export type ValueOf<O extends Operation> = O['answer'] extends z.ZodMiniType ? z.output<O['answer']> : null;

/** A row for `defineRows`: a new one, or one that has its name already. */
type Given = Row | Operation;

type GroupOf<Rows> = {
  [K in keyof Rows]: Rows[K] extends { readonly group: infer G extends string } ? G : never;
}[keyof Rows];

/** A write may only invalidate groups that a read of the same rows belongs to. No row has other members than `Row` or `Operation`. */
type Checked<Rows> = {
  readonly [K in keyof Rows]: {
    readonly invalidates?: readonly Invalidated<GroupOf<Rows>>[];
  } & Readonly<Record<Exclude<keyof Rows[K], keyof Row | keyof Operation>, never>>;
};

/** `invalidates` stays what the row says, or the row could not stand among others in `defineRows` again. */
export type Named<Rows> = {
  readonly [K in keyof Rows]: Rows[K] & Omit<Operation, 'invalidates'> & { readonly id: K };
};

/**
 * The endpoints of an upstream, each by the name that it has from then on: in logs, metrics, the OpenAPI document and
 * `CACHE_POLICY`.
 * @throws TypeError in words for what a row cannot be
 */
export function defineRows<const Rows extends Readonly<Record<string, Given>>>(
  rows: Rows & Checked<Rows>,
): Named<Rows> {
  const named = Object.entries<Given>(rows).map(([id, row]) => [id, operationOf(id, row)]);
  return Object.fromEntries(named) as Named<Rows>; // the same keys and rows, each with its key as `id`
}

const OTHER: Tag = { name: 'Upstream', description: 'Further calls of the upstream.' };

function operationOf(id: string, row: Given): Operation {
  const problem = problemOf(id, row);
  if (problem !== undefined) throw new TypeError(`the row \`${id}\` ${problem}`);
  const [method, path = ''] = row.at.split(' ');
  const known = { id, method: method as Method, path, parts: partsOf(path), params: paramsOf(path, row.params) };
  return { tag: OTHER, summary: wordsOf(id), ...row, ...known };
}

/** The longest time in a policy: a year, in seconds. */
export const MOST_SECONDS = 31_536_000;

const METHOD_AND_PATH =
  /^(GET|POST|PUT|PATCH|DELETE) ((?:\/(?:\{[a-zA-Z]\w{0,31}\}|(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+))+\/?)$/;

/** What is wrong with a row, after its name; undefined if nothing is. */
function problemOf(id: string, row: Given): string | undefined {
  const { at, cache, group, invalidates, secrets, signsIn, refusals = {}, credential } = row;
  const isRead = at.startsWith('GET ');
  const code = Object.keys(refusals).find((one) => !isCode(one));
  const names = namesIn(at);
  if (!/^[a-zA-Z]\w{0,63}$/.test(id)) return 'needs a name of letters, digits and _';
  if (id in {}) return 'has a name that every object of JavaScript has';
  if (!METHOD_AND_PATH.test(at) || new Set(names).size < names.length || names.some((name) => name in {}))
    return 'is not at a method and a path, such as `GET /badge/{id}/`, whose parameters are whole segments with names';
  for (const [name, form] of Object.entries(row.params ?? {})) {
    if (!names.includes(name)) return `has a form for \`${name}\`, which is no parameter of its path`;
    if (!isForm(form))
      return `has a parameter \`${name}\` whose form is not \`digits\`, \`slug\`, \`uuid\` or \`name\``;
  }
  if (isRead && (invalidates ?? row.exclusive ?? row.body)) return 'is a read: it has no body and invalidates nothing';
  if (!isRead && (cache ?? group)) return 'is a write: it is not cached and belongs to no group';
  if (credential && isRead) return 'is a read without a credential: all that is read is of an account';
  if (credential && invalidates?.length)
    return 'takes no credential: it is of no account of which it might invalidate anything';
  if (group !== undefined && (!/^[a-zA-Z][\w-]{0,63}$/.test(group) || group === 'everything'))
    return 'is of a group whose name is none: it needs letters, digits, _ and -, and is not `everything`';
  if (cache && [cache.fresh, cache.stale, cache.onError].some((time) => !(time >= 0 && time <= MOST_SECONDS)))
    return 'needs `fresh`, `stale` and `onError` in `cache`, in seconds up to a year';
  if (cache && group === undefined) return 'cannot be cached without a `group`, which writes name in `invalidates`';
  if (cache && secrets) return 'cannot be cached: its answer has secrets';
  if (row.polled && (!isRead || (cache ?? secrets))) return 'is polled: it is a read, neither cached nor with secrets';
  if (names.length === 0 && invalidates?.some((one) => typeof one === 'object'))
    return 'invalidates one item, which its path does not name: it has no parameter';
  if (signsIn && !(row.body && credential)) return 'signs in: it takes a body and no credential';
  if (signsIn && names.length > 0) return 'signs in: its path has no parameters';
  if (signsIn && !/^[a-z][a-z0-9-]{0,31}$/.test(signsIn.as)) return 'signs in `as` something that is no part of a path';
  return code === undefined
    ? undefined
    : `is refused with \`${code}\`, which is no code: lower-case words, joined by _ or -`;
}

/** The group that a write names in `invalidates`. */
export const groupIn = (one: Invalidated<string>): string => (typeof one === 'string' ? one : one.item);

/** `listApiCalls` becomes `List API calls`. */
function wordsOf(id: string): string {
  const words = id.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const written = words.replace(/ (api|id|ip) /, (word) => word.toUpperCase());
  return written.charAt(0).toUpperCase() + written.slice(1);
}
