import type { Portico } from './client.ts';
import { PorticoProblem, problemWithout } from './problem.ts';
import { wireOf } from './request.ts';
import type { Calling } from './send.ts';
import { touched } from './table.ts';
import type { Answer, CallOptions, Input, Item, ListId, OperationId } from './types.ts';

export interface Page<T = unknown> {
  readonly results: readonly T[];
  readonly next?: unknown;
}

/**
 * The query of the link to the next page: what host it names is not ours to trust with a key. Null, empty or missing: there is
 * none. Undefined where it is no such link.
 */
export function nextIn({ next }: Page): string | null | undefined {
  return next ? /^[^?]*\?(.+)/.exec(typeof next === 'string' ? next : '')?.[1] : null;
}

/**
 * Every entry of a list, page by page; a page is asked for when the one before is used up. All are of the account of the
 * first. Throws where the way to the next page is no link, or leads back.
 */
export async function* each<Id extends ListId>(
  portico: Portico,
  id: Id,
  input?: Input<Id>,
  options: CallOptions = {},
): AsyncGenerator<Item<Id>, void, undefined> {
  const read = portico[id] as unknown as (input?: object, options?: Calling) => Promise<Page<Item<Id>>>;
  const wire = wireOf(portico.routes[id], input, options);
  const seen = new Set([nextIn({ results: [], next: wire.path })]);
  const caller = {};
  let page = await read(input, { ...options, caller });
  for (;;) {
    yield* page.results;
    const query = nextIn(page);
    if (query === null) return;
    if (query === undefined || seen.has(query))
      throw problemWithout('unexpected_answer', wire, `no way to another page: ${String(page.next)}`);
    seen.add(query);
    page = await read(undefined, { ...options, caller, query });
  }
}

/** Reads that may be in a batch: those of the upstream's paths. */
type ReadId = Exclude<Extract<OperationId, `get${string}` | `list${string}`>, `get${string}Overview` | 'getSession'>;
type Reads = Readonly<Record<string, { [Id in ReadId]: readonly [id: Id, input?: Input<Id>] }[ReadId]>>;
type ReadOf<Given> = Given extends readonly [infer Id extends OperationId, ...unknown[]]
  ? Answer<Id> | PorticoProblem
  : never;
type Batch<Given> = { -readonly [Name in keyof Given]: ReadOf<Given[Name]> };

/** Up to 20 reads in one call, by names of yours. One that failed is its problem; it is returned, not thrown. */
export async function readBatch<const Given extends Reads>(
  portico: Portico,
  reads: Given,
  options?: CallOptions,
): Promise<Batch<Given>> {
  const pathOf = ([id, input]: Reads[string]) => wireOf(portico.routes[id], input).path;
  const requests = Object.entries(reads).map(([id, read]) => ({ id, path: pathOf(read) }));
  const { responses } = await portico.batch({ requests }, options);
  // The upstream may answer with 204 too, which the document does not know.
  const answers = responses.map(({ id, status, body }) => [
    id,
    status === 200 || status < 300 ? body : new PorticoProblem(body),
  ]);
  return Object.fromEntries(answers) as Batch<Given>;
}

/** Which reads have to be made again once this write is done, or may have been: their operation ids, overviews among them. */
export const touches = <Write extends keyof typeof touched>(write: Write): (typeof touched)[Write] => touched[write];
