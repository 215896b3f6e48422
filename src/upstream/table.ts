import * as z from 'zod/mini';
import type { ErrorKind } from '../core/errors.ts';
import { exampleOf } from './fields.ts';
import { groupIn, ID_FORMS, type Method, type Operation } from './operation.ts';

/** The operations of one upstream, and what is looked up in them. Made once for each gateway. */
export interface Table {
  readonly operations: readonly Operation[];
  /** The operations at an upstream path, by method, and its `<ID>`; undefined if there are none. */
  at(path: string): { readonly methods: ReadonlyMap<Method, Operation>; readonly id: string | undefined } | undefined;
  /** Whether answers that a write invalidates are cached at all. */
  invalidatesCached(operation: Operation): boolean;
  /** Codes that the upstream is known to refuse with. */
  readonly refusals: ReadonlyMap<string, ErrorKind>;
}

/** @throws TypeError if two rows are at the same method and path, or the document cannot show what is sent and answered */
export function tableOf(rows: Readonly<Record<string, Operation>>): Table {
  const operations = Object.values(rows);
  checkRows(rows);
  checkBodies(operations);
  const places = [...Map.groupBy(operations, placeOf)].toSorted(([a], [b]) => fixedFirst(a, b));
  const templates = places.map(([, there]) => ({ pattern: patternOf(there[0]), methods: methodsOf(there) }));
  const cached = new Set(operations.filter(({ cache }) => cache).map(({ group }) => group));
  return {
    operations,
    at(path) {
      for (const { pattern, methods } of templates) {
        const match = pattern.exec(path);
        if (match) return { methods, id: match[1] };
      }
      return undefined;
    },
    invalidatesCached: ({ invalidates = [] }) =>
      invalidates.some((one) => one === 'everything' || cached.has(groupIn(one))),
    refusals: new Map(operations.flatMap(({ refusals = {} }) => Object.entries(refusals))),
  };
}

/** What one row cannot know of the others: they may come from several `defineRows`. */
function checkRows(rows: Readonly<Record<string, Operation>>): void {
  const groups = new Set(Object.values(rows).map(({ group }) => group));
  for (const [id, row] of Object.entries(rows)) {
    const strange = row.invalidates?.map(groupIn).find((name) => name !== 'everything' && !groups.has(name));
    if (strange !== undefined)
      throw new TypeError(`the row \`${id}\` invalidates \`${strange}\`, to which no read belongs`);
  }
}

/** A path with and without its last slash is one place. */
const placeOf = ({ path }: Operation) => path.replace(/\/$/, '');

/** A path without a parameter comes before those whose parameter might be a part of it. */
export const fixedFirst = (a: string, b: string) => Number(hasParameter(a)) - Number(hasParameter(b));

/** The parameter is `{id}` in a row, and begins with a colon in a pattern of Hono's. */
const hasParameter = (path: string) => path.includes('{') || path.includes(':');

/** The document shows each body by its name, with an example. */
function checkBodies(operations: readonly Operation[]): void {
  for (const { id, answer, body } of operations)
    for (const schema of [answer, body?.schema]) if (schema) checkBody(id, schema);
}

function checkBody(id: string, schema: z.ZodMiniType): void {
  if (z.globalRegistry.get(schema)?.id === undefined)
    throw new TypeError(`the row \`${id}\` has a body without a name: make it with resource() or model()`);
  try {
    exampleOf(schema);
  } catch (error) {
    throw new TypeError(`the row \`${id}\` has a body that cannot be shown: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function methodsOf(rows: readonly Operation[]): ReadonlyMap<Method, Operation> {
  const methods = new Map(rows.map((row): [Method, Operation] => [row.method, row]));
  if (methods.size === rows.length) return methods;
  throw new TypeError(
    `two of the rows ${rows.map(({ id }) => `\`${id}\``).join(', ')} are at the same method and path`,
  );
}

/** The last slash may be left out. */
function patternOf(row: Operation | undefined): RegExp {
  const place = row && placeOf(row).replaceAll('.', String.raw`\.`);
  const path = place?.replace('{id}', `(${ID_FORMS[row?.idForm ?? 'digits']})`);
  return new RegExp(`^${path}/?$`);
}
