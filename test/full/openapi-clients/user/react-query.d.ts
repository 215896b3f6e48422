import type {
  InfiniteData,
  InfiniteQueryObserverOptions,
  InfiniteQueryObserverResult,
  MutationObserverOptions,
  QueryClient,
  QueryObserverOptions,
  QueryObserverResult,
} from '@tanstack/query-core';

// The hooks that docs/tanstack.md uses, as far as the core of TanStack Query knows their types.

type Key = readonly unknown[];
type Pages<Data> = InfiniteData<Data, number>;

export declare function useQueryClient(): QueryClient;
export declare function useQuery<Data, Of extends Key>(
  options: QueryObserverOptions<Data, Error, Data, Data, Of>,
): QueryObserverResult<Data>;
export declare function useInfiniteQuery<Data, Of extends Key>(
  options: InfiniteQueryObserverOptions<Data, Error, Pages<Data>, Of, number>,
): InfiniteQueryObserverResult<Pages<Data>>;
export declare function useMutation<Data, Given>(
  options: MutationObserverOptions<Data, Error, Given>,
): { readonly mutate: (given: Given) => void };
