import type { Portico } from './client.ts';
import { nextIn, type Page } from './reads.ts';
import type { Answer, Input, ListId, OperationId, OverviewId, OverviewInput, PlainOverviewId, Takes } from './types.ts';

/** Operations that change nothing. */
type ReadId = Extract<OperationId, `get${string}` | `list${string}`>;

type Context = { readonly signal: AbortSignal };
/** What TanStack Query takes. The client tries again by itself. */
export interface Query<Id extends ReadId, Result, Given = Context, More extends readonly string[] = []> {
  readonly queryKey: readonly [account: string, id: Id, input: object, ...More];
  readonly queryFn: (context: Given) => Promise<Result>;
  readonly retry: false;
}
type PageContext = Context & { readonly pageParam: string };
export interface PagesQuery<Id extends ReadId, Result> extends Query<Id, Result, PageContext, ['pages']> {
  readonly initialPageParam: string;
  readonly getNextPageParam: (page: Result, ...more: [unknown?, unknown?, (readonly string[])?]) => string | null;
}

export interface Queries {
  <Id extends OverviewId & ReadId, const Asked extends OverviewInput<Id>>(
    id: Id,
    input: Asked,
  ): Query<Id, Answer<Id, Asked>>;
  <Id extends PlainOverviewId & ReadId>(id: Id, input?: undefined): Query<Id, Answer<Id>>;
  <Id extends Exclude<ReadId, OverviewId>>(id: Id, ...given: Takes<Id>): Query<Id, Answer<Id>>;
  /** For `useInfiniteQuery`. */
  readonly pages: <Id extends ListId & ReadId>(id: Id, input?: Input<Id>) => PagesQuery<Id, Answer<Id>>;
}

type Reading = (input: object | undefined, options: object) => Promise<Page>;

/**
 * Options for TanStack Query, as plain objects. Keys begin with the account, so that
 * `queryClient.removeQueries({ queryKey: [account] })` forgets all of it.
 */
export function queriesOf(portico: Portico, account: string): Queries {
  const read = (id: ReadId) => portico[id] as unknown as Reading;
  const query = (id: ReadId, input: object = {}) => ({
    queryKey: [account, id, input],
    queryFn: ({ signal }: Context) => read(id)(input, { signal }),
    retry: false,
  });
  const pages = (id: ReadId, input: object = {}) => ({
    queryKey: [account, id, input, 'pages'],
    queryFn: ({ signal, pageParam: at }: PageContext) => read(id)(at ? undefined : input, { signal, query: at }),
    retry: false,
    initialPageParam: '',
    // One that leads back, or is no link, is the end.
    getNextPageParam(page: Page, ...[, , seen = []]: [unknown?, unknown?, string[]?]) {
      const next = nextIn(page) ?? null;
      return next && seen.includes(next) ? null : next;
    },
  });
  return Object.assign(query, { pages }) as unknown as Queries;
}
