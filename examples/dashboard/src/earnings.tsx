import { useQuery } from '@tanstack/react-query';
import { each } from 'portico-client';
import { Failure } from './failure.tsx';
import { Panel } from './panel.tsx';
import { Plot, type Point } from './plot.tsx';
import { portico } from './portico.ts';
import { troubleOf } from './problem.ts';
import { Scroll } from './scroll.tsx';
import { Skeleton } from './skeleton.tsx';
import { money, month } from './words.ts';

interface Credit {
  readonly at: string;
  readonly amount: number;
}

/** All credits, oldest first. Those that were taken back do not count. */
async function readCredits(signal: AbortSignal): Promise<Credit[]> {
  const credits: Credit[] = [];
  const input = { page_size: 100, ordering: 'created_at' } as const;
  for await (const { amount, created_at, reverted_at } of each(portico, 'listReferralCredits', input, { signal })) {
    if (reverted_at === null) credits.push({ at: created_at, amount: Number(amount) });
  }
  return credits;
}

export function Earnings({ account }: { readonly account: string }) {
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: [account, 'earnings'],
    queryFn: ({ signal }) => readCredits(signal),
    retry: false,
  });
  return (
    <Panel title="Referral earnings" isBusy={isFetching} size="wide">
      {error && <Failure trouble={troubleOf(error)} onRetry={refetch} />}
      {!data && !error && <Skeleton lines={6} />}
      {data?.length === 0 && <p>No referral has earned anything yet.</p>}
      {data && data.length > 0 && <Shown credits={data} />}
    </Panel>
  );
}

function Shown({ credits }: { readonly credits: readonly Credit[] }) {
  const points = cumulated(credits);
  const total = money(points.at(-1)?.sum ?? 0);
  return (
    <>
      <p className="figure">
        {total} <small>from {credits.length} purchases that were not taken back</small>
      </p>
      <Plot points={points} label={`Earnings so far, rising to ${total}. The numbers are in the table below.`} />
      <details>
        <summary>By month</summary>
        <Months credits={credits} />
      </details>
    </>
  );
}

function cumulated(credits: readonly Credit[]): Point[] {
  let sum = 0;
  return credits.map(({ at, amount }) => ({ at: Date.parse(at) / 1000, sum: (sum += amount) }));
}

function Months({ credits }: { readonly credits: readonly Credit[] }) {
  const months = Map.groupBy(credits, ({ at }) => month(at));
  return (
    <Scroll label="By month">
      <table>
        <thead>
          <tr>
            <th scope="col">Month</th>
            <th scope="col" className="number">
              Purchases
            </th>
            <th scope="col" className="number">
              Earned
            </th>
          </tr>
        </thead>
        <tbody>
          {[...months].map(([name, earned]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td className="number">{earned.length}</td>
              <td className="number">{money(earned.reduce((sum, { amount }) => sum + amount, 0))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
