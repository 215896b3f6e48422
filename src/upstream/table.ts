import * as z from 'zod/mini';
import { exampleOf } from './fields.ts';
import { groupIn, type Operation } from './operation.ts';
import { pageFlaw } from './page.ts';
import { namesIn, pathWith, patternOf } from './path.ts';

export type Table = ReturnType<typeof tableOf>;

/**
 * The operations of one upstream, and what is looked up in them.
 * @throws TypeError if two rows are at the same method and path, or the document cannot show what is sent and answered
 */
export function tableOf(rows: Readonly<Record<string, Operation>>) {
  const operations: readonly Operation[] = Object.values(rows);
  const groups = new Set(operations.map(({ group }) => group));
  const named = new Map<string, z.core.$ZodType>();
  for (const operation of operations) checkRow(operation, groups, named);
  for (const operation of operations) checkItems(operation, operations);
  const places = [...Map.groupBy(operations, placeOf)]
    .toSorted(([a], [b]) => fixedFirst(a, b))
    .map(([, there]) => placeWith(there));
  const reads = places.filter(({ methods }) => methods.has('GET'));
  const rivals = new Map(
    reads.map(({ path, methods }, index) => [
      methods.get('GET'),
      reads.slice(0, index).filter((other) => mayMeet(other.path, path)),
    ]),
  );
  const cached = new Set(operations.filter(({ cache }) => cache).map(({ group }) => group));
  return {
    operations,
    /** The operations at an upstream path, those with a GET first, and the values of its parameters; undefined if there are none. */
    at(path: string) {
      const there = places.flatMap(({ pattern, methods }) => {
        const match = pattern.exec(path);
        return match ? [{ methods, id: match.length > 1 ? match.slice(1).join('/') : undefined }] : [];
      });
      return there.find(({ methods }) => methods.has('GET')) ?? there[0]; // as the router: the first that has the method
    },
    /** Whether a read with these values of its parameters has the path of another row, such as `/keys/{id}` with `current`. */
    isOfAnother(operation: Operation, id: string | undefined): boolean {
      const before = id === undefined ? undefined : rivals.get(operation);
      return before?.some(({ pattern }) => pattern.test(pathWith(operation, id))) === true;
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
function checkRow(
  { id, invalidates = [], answer, body, page }: Operation,
  groups: ReadonlySet<string | undefined>,
  named: Map<string, z.core.$ZodType>,
): void {
  const strange = invalidates.map(groupIn).find((name) => name !== 'everything' && !groups.has(name));
  if (strange !== undefined)
    throw new TypeError(`the row \`${id}\` invalidates \`${strange}\`, to which no read belongs`);
  const flaw = page && pageFlaw(answer, page);
  if (flaw !== undefined) throw new TypeError(`the row \`${id}\` ${flaw}`);
  for (const schema of [answer, body?.schema]) {
    if (!schema) continue;
    const name = z.globalRegistry.get(schema)?.id;
    if (name === undefined)
      throw new TypeError(`the row \`${id}\` has a body without a name: make it with resource() or model()`);
    if ((named.get(name) ?? schema) !== schema)
      throw new TypeError(`the row \`${id}\` has a body named \`${name}\`, as another one is`);
    named.set(name, schema);
    try {
      exampleOf(schema);
    } catch (cause) {
      throw new TypeError(`the row \`${id}\` has a body that cannot be shown: ${(cause as Error).message}`, { cause });
    }
  }
}

/** A write that invalidates an item has to name each read of the group that has parameters, or old copies would stay. */
function checkItems({ id, path, invalidates = [] }: Operation, operations: readonly Operation[]): void {
  const names = namesIn(path).join('/');
  for (const one of invalidates) {
    if (typeof one === 'string') continue;
    const reads = operations.filter(({ group, params }) => group === one.item && Object.keys(params).length > 0);
    const other = reads.find((read) => !`${names}/`.startsWith(`${namesIn(read.path).join('/')}/`));
    if (other)
      throw new TypeError(
        `the row \`${id}\` invalidates one item of \`${one.item}\`, and its path does not begin with the parameters of ` +
          `\`${other.id}\`: ${other.path}`,
      );
  }
}

/** A path with and without its last slash is one place, whatever its parameters are called. */
const placeOf = ({ path }: Operation) => path.replace(/\/$/, '').replaceAll(/\{\w+\}/g, '{}');

/** The order in which paths are looked at: a fixed segment before a parameter, `{id}` or `:id`, that might be the same. */
export const fixedFirst = (a: string, b: string) => (orderOf(a) < orderOf(b) ? -1 : Number(orderOf(a) > orderOf(b)));

const orderOf = (path: string) => path.replaceAll(/\/([{:]?)[^/]*/g, (_, mark: string) => (mark === '' ? '0' : '1'));

function placeWith(rows: readonly Operation[]) {
  const methods = new Map(rows.map((row) => [row.method, row]));
  const names = rows.map(({ id }) => `\`${id}\``).join(', ');
  if (methods.size < rows.length) throw new TypeError(`two of the rows ${names} are at the same method and path`);
  const [{ path, params }, ...others] = rows as [Operation, ...Operation[]]; // groups are not empty
  const known = JSON.stringify(params);
  if (others.some((other) => JSON.stringify(other.params) !== known))
    throw new TypeError(`the rows ${names} are at one path, and have other names or forms for its parameters`);
  return { path, pattern: patternOf(path, params), methods };
}

/** Whether two paths may be the same with some values of their parameters. */
function mayMeet(path: string, other: string): boolean {
  const [one, two] = [path, other].map((each) => each.replace(/\/$/, '').split('/')) as [string[], string[]];
  return (
    one.length === two.length &&
    one.every((part, at) => part.startsWith('{') || two[at]?.startsWith('{') || part === two[at])
  );
}
