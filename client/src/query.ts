import type { Portico } from './client.ts';
import { queryIn } from './each.ts';
import type { OperationId } from './routes.ts';
import type { Answer, Input, ListId, OverviewId, OverviewInput, PlainOverviewId, Selection, Takes } from './types.ts';

/** Operations that change nothing. */
type ReadId = Extract<OperationId, `get${string}` | `list${string}`>;

/** What TanStack Query takes. The client tries again by itself. */
export interface Query<Id extends ReadId, Result> {
  readonly queryKey: readonly [account: string, id: Id, input: object];
  readonly queryFn: (context: { readonly signal: AbortSignal }) => Promise<Result>;
  readonly retry: false;
}

export interface PagesQuery<Id extends ReadId, Result> extends Omit<Query<Id, Result>, 'queryFn' | 'queryKey'> {
  readonly queryKey: readonly [account: string, id: Id, input: object, 'pages'];
  readonly queryFn: (context: { readonly signal: AbortSignal; readonly pageParam: string }) => Promise<Result>;
  readonly initialPageParam: string;
  readonly getNextPageParam: (page: Result) => string | null;
}

export interface Queries {
  <Id extends PlainOverviewId & ReadId, const Asked extends Selection<Id> = object>(
    id: Id,
    input?: Asked,
  ): Query<Id, Answer<Id, Asked>>;
  <Id extends OverviewId & ReadId, const Asked extends OverviewInput<Id>>(
    id: Id,
    input: Asked,
  ): Query<Id, Answer<Id, Asked>>;
  <Id extends Exclude<ReadId, OverviewId>>(id: Id, ...given: Takes<Id>): Query<Id, Answer<Id>>;
  /** For `useInfiniteQuery`. */
  readonly pages: <Id extends ListId & ReadId>(id: Id, input?: Input<Id>) => PagesQuery<Id, Answer<Id>>;
}

type Reading = (input: object | undefined, options: object) => Promise<{ readonly next: string | null }>;

/**
 * Options for TanStack Query, as plain objects. Keys begin with the account, so that
 * `queryClient.removeQueries({ queryKey: [account] })` forgets all of it.
 */
export function queriesOf(portico: Portico, account: string): Queries {
  const read = (id: ReadId) => portico[id] as unknown as Reading;
  const query = (id: ReadId, input: object = {}) => ({
    queryKey: [account, id, input],
    queryFn: ({ signal }: { signal: AbortSignal }) => read(id)(input, { signal }),
    retry: false,
  });
  const pages = (id: ReadId, input: object = {}) => ({
    queryKey: [account, id, input, 'pages'],
    queryFn: ({ signal, pageParam }: { signal: AbortSignal; pageParam: string }) =>
      pageParam ? read(id)(undefined, { signal, query: pageParam }) : read(id)(input, { signal }),
    retry: false,
    initialPageParam: '',
    getNextPageParam: ({ next }: { next: string | null }) => next && queryIn(next),
  });
  return Object.assign(query, { pages }) as unknown as Queries;
}
