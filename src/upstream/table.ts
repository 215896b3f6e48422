import * as z from 'zod/mini';
import { exampleOf } from './fields.ts';
import { groupIn, ID_FORMS, type IdForm, type Operation } from './operation.ts';

export type Table = ReturnType<typeof tableOf>;

/**
 * The operations of one upstream, and what is looked up in them.
 * @throws TypeError if two rows are at the same method and path, or the document cannot show what is sent and answered
 */
export function tableOf(rows: Readonly<Record<string, Operation>>) {
  const operations: readonly Operation[] = Object.values(rows);
  const groups = new Set(operations.map(({ group }) => group));
  for (const operation of operations) checkRow(operation, groups);
  const places = [...Map.groupBy(operations, placeOf)]
    .toSorted(([a], [b]) => fixedFirst(a, b))
    .map(([place, there]) => ({ pattern: patternOf(place, there[0]?.idForm), methods: methodsOf(there) }));
  const cached = new Set(operations.filter(({ cache }) => cache).map(({ group }) => group));
  return {
    operations,
    /** The operations at an upstream path, by method, and its `<ID>`; undefined if there are none. */
    at(path: string) {
      for (const { pattern, methods } of places) {
        const match = pattern.exec(path);
        if (match) return { methods, id: match[1] };
      }
      return undefined;
    },
    /** Whether answers that a write invalidates are cached at all. */
    invalidatesCached: ({ invalidates = [] }: Operation) =>
      invalidates.some((one) => one === 'everything' || cached.has(groupIn(one))),
    /** Codes that the upstream is known to refuse with. */
    refusals: new Map(operations.flatMap(({ refusals = {} }) => Object.entries(refusals))),
  };
}

/**
 * What `defineRows` cannot know: the groups of rows from another one. The document shows each body by its name, with an
 * example.
 */
function checkRow({ id, invalidates = [], answer, body }: Operation, groups: ReadonlySet<string | undefined>): void {
  const strange = invalidates.map(groupIn).find((name) => name !== 'everything' && !groups.has(name));
  if (strange !== undefined)
    throw new TypeError(`the row \`${id}\` invalidates \`${strange}\`, to which no read belongs`);
  for (const schema of [answer, body?.schema]) {
    if (!schema) continue;
    if (z.globalRegistry.get(schema)?.id === undefined)
      throw new TypeError(`the row \`${id}\` has a body without a name: make it with resource() or model()`);
    try {
      exampleOf(schema);
    } catch (cause) {
      throw new TypeError(`the row \`${id}\` has a body that cannot be shown: ${(cause as Error).message}`, { cause });
    }
  }
}

/** A path with and without its last slash is one place. */
const placeOf = ({ path }: Operation) => path.replace(/\/$/, '');

/** A path without a parameter, `{id}` or `:id`, comes before those whose parameter might be a part of it. */
export const fixedFirst = (a: string, b: string) => Number(/[{:]/.test(a)) - Number(/[{:]/.test(b));

function methodsOf(rows: readonly Operation[]) {
  const methods = new Map(rows.map((row) => [row.method, row]));
  if (methods.size === rows.length) return methods;
  throw new TypeError(
    `two of the rows ${rows.map(({ id }) => `\`${id}\``).join(', ')} are at the same method and path`,
  );
}

function patternOf(place: string, idForm: IdForm = 'digits'): RegExp {
  const literal = place.replaceAll('.', String.raw`\.`);
  return new RegExp(`^${literal.replace('{id}', `(${ID_FORMS[idForm]})`)}/?$`);
}
