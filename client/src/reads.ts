import type { Portico } from './client.ts';
import type { Problem } from './openapi.ts';
import { type Calling, reasonOf } from './send.ts';
import { touched } from './table.ts';
import type { Answer, CallOptions, Input, Item, ListId, OperationId } from './types.ts';
import type { OverviewId, SectionLine, Takes } from './types.ts';
import { PorticoProblem, problemWithout, wireOf } from './wire.ts';

type Page<T> = Readonly<{ results: readonly T[]; next?: string | number | null }>; // a number is no link

/**
 * Every entry of a list, page by page; a page is asked for when the one before is used up. All are of the account of the
 * first. Only the query of a link counts: a host that it names is not trusted with a key. Throws where a link is none, or
 * leads back.
 */
export async function* each<Id extends ListId>(
  portico: Portico,
  id: Id,
  input?: Input<Id>,
  options: CallOptions = {},
): AsyncGenerator<Item<Id>, void, undefined> {
  const read = portico[id] as unknown as (input?: object, options?: Calling) => Promise<Page<Item<Id>>>;
  const route = portico.routes[id];
  const wire = wireOf(route, input, options);
  const [caller, seen] = [{}, new Set<unknown>(['', wire.path.split('?')[1]])];
  const ids = Object.fromEntries(Object.entries(input ?? {}).filter(([name]) => route.includes(`{${name}}`)));
  for (let query: string | null | undefined = ''; query !== null; seen.add(query)) {
    const page: Page<Item<Id>> = await read(query ? ids : input, { ...options, caller, ...(query && { query }) });
    yield* page.results;
    query = page.next ? /^[^?]*\?(.+)/.exec(String(page.next))?.[1] : null;
    if (query === undefined || seen.has(query))
      throw problemWithout('unexpected_answer', wire, `no way to another page: ${String(page.next)}`);
  }
}

/** Reads that may be in a batch: those of the upstream's paths. */
type ReadId = Exclude<Extract<OperationId, `get${string}` | `list${string}`>, `get${string}Overview` | 'getSession'>;
type Reads = Readonly<Record<string, { [Id in ReadId]: readonly [id: Id, input?: Input<Id>] }[ReadId]>>;
type Batch<Given> = {
  -readonly [Name in keyof Given]: Given[Name] extends readonly [infer Id extends ReadId, ...unknown[]]
    ? Answer<Id> | PorticoProblem
    : never;
};

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
  const isGood = (one: (typeof responses)[number]) => one.status === 200 || one.status < 300;
  const answers = responses.map((one) => [one.id, isGood(one) ? one.body : new PorticoProblem(one.body as Problem)]);
  return Object.fromEntries(answers) as Batch<Given>;
}

/** Which reads have to be made again once this write is done, or may have been: their operation ids, overviews among them. */
export const touches = <Write extends keyof typeof touched>(write: Write): (typeof touched)[Write] => touched[write];

/**
 * The sections of an overview as they come. One that failed has `error` in place of `data`. Throws where the answer was
 * cut off. It does not begin again by itself once it has begun.
 */
export async function* streamOverview<Id extends OverviewId, const Given extends Readonly<Takes<Id>>>(
  portico: Portico,
  id: Id,
  ...[input, options]: Given
): AsyncGenerator<SectionLine<Id, Given[0]>, void, undefined> {
  const asked = portico.response as (id: OverviewId, ...given: unknown[]) => Promise<Response>;
  const headers = { accept: 'application/x-ndjson', ...options?.headers };
  const response = await asked(id, input, { ...options, headers });
  let [isWhole, cause]: [boolean, unknown] = [false, 'no last line'];
  try {
    for await (const text of linesOf(response)) {
      if (isWhole || !text) continue; // to the end of the body: the connection serves the next call too
      const line = portico.parse(text) as SectionLine<Id, Given[0]> | { readonly complete: boolean };
      if ('complete' in line) isWhole = true;
      else yield line;
    }
  } catch (error) {
    if (options?.signal?.aborted) throw reasonOf(options.signal, error);
    cause = error;
  }
  if (!isWhole) throw problemWithout('connection_failed', wireOf(portico.routes[id], input), cause);
}

/** As they arrive; all at once where `fetch` has no stream (React Native). */
async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader?.();
  if (!reader) yield* (await response.text()).split('\n').slice(0, -1);
  if (!reader) return;
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = decoder.decode(value, { stream: true }).split('\n');
      lines[0] = rest + lines[0]; // only what is new is looked at: a long line comes in many pieces
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    void reader.cancel().catch(() => undefined); // whoever reads no further wants no more of it
  }
}
