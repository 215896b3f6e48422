import type { Portico } from './client.ts';
import { nextIn, type Page } from './lists.ts';
import type { Answer, Input, ListId, OperationId, OverviewId, OverviewInput, Takes } from './types.ts';

/** Operations that change nothing. */
type ReadId = Extract<OperationId, `get${string}` | `list${string}`>;

interface Context {
  readonly signal: AbortSignal;
}
/** What TanStack Query takes. The client tries again by itself. */
export interface Query<Id extends ReadId, Result, Given = Context, More extends readonly string[] = []> {
  readonly queryKey: readonly [account: string, id: Id, input: object, ...More];
  readonly queryFn: (context: Given) => Promise<Result>;
  readonly retry: false;
}
interface PageContext extends Context {
  readonly pageParam: string;
}
export interface PagesQuery<Id extends ReadId, Result> extends Query<Id, Result, PageContext, ['pages']> {
  readonly initialPageParam: string;
  readonly getNextPageParam: (page: Result, ...more: [unknown?, unknown?, (readonly string[])?]) => string | null;
}

export interface Queries {
  <Id extends OverviewId & ReadId, const Asked extends OverviewInput<Id> = never>(
    id: Id,
    ...given: Takes<Id, Asked, never>
  ): Query<Id, Answer<Id, Asked>>;
  <Id extends Exclude<ReadId, OverviewId>>(id: Id, ...given: Takes<Id, Input<Id>, never>): Query<Id, Answer<Id>>;
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
    queryFn: ({ signal, pageParam }: PageContext) =>
      read(id)(pageParam ? undefined : input, { signal, query: pageParam }),
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
