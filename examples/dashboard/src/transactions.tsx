import { useInfiniteQuery } from '@tanstack/react-query';
import type { Item } from 'portico-client';
import { Failure } from './failure.tsx';
import { Panel } from './panel.tsx';
import { portico } from './portico.ts';
import { troubleOf } from './problem.ts';
import { Scroll } from './scroll.tsx';
import { Skeleton } from './skeleton.tsx';
import { day, money } from './words.ts';

export const PAGE = { page_size: 10 };

type Transaction = Item<'listTransactions'>;

export function Transactions({ account }: { readonly account: string }) {
  const { data, error, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: [account, 'listTransactions'],
    queryFn: ({ pageParam: query, signal }) => portico.listTransactions(query ? {} : PAGE, { query, signal }),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next?.split('?')[1],
    retry: false,
  });
  const shown = data?.pages.flatMap(({ results }) => results) ?? [];
  const count = data?.pages.at(-1)?.count ?? 0;
  return (
    <Panel title="Transactions" isBusy={isFetching} size="wide">
      {error && <Failure trouble={troubleOf(error)} onRetry={refetch} />}
      {!data && !error && <Skeleton lines={6} />}
      {data && count === 0 && <p>There are none.</p>}
      {shown.length > 0 && <Table transactions={shown} />}
      {data && count > 0 && (
        <p className="more">
          <span role="status">
            {shown.length} of {count}
          </span>
          {hasNextPage && (
            <button type="button" onClick={() => void fetchNextPage()}>
              Show more
            </button>
          )}
        </p>
      )}
    </Panel>
  );
}

/** Nothing, if all went as it should. */
function stateOf({ status, refund_amount }: Transaction): string | undefined {
  if (refund_amount > 0) return 'refunded';
  return status === 'completed' ? undefined : status;
}

function Table({ transactions }: { readonly transactions: readonly Transaction[] }) {
  return (
    <Scroll label="Transactions">
      <table>
        <thead>
          <tr>
            <th scope="col">Date</th>
            <th scope="col">For</th>
            <th scope="col" className="number">
              Charged
            </th>
          </tr>
        </thead>
        <tbody>
          {transactions.map((one) => (
            <tr key={one.id}>
              <td>{day(one.created_at)}</td>
              <td>
                {one.reason} <small>{stateOf(one)}</small>
                {one.credits_used > 0 && <small>and {money(one.credits_used)} of credit</small>}
              </td>
              <td className="number">{money(one.amount)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
