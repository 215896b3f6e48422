import type { Answer } from 'portico-client';
import { money } from './words.ts';

/** The sandbox's prices. The API that it stands for has an endpoint for them, which is not documented. */
const PROXY = 0.5;
const LOWEST = 2.5;

interface Props {
  readonly proxies: number;
  readonly subscription: Answer<'getSubscription'> | undefined;
}

/** What a month costs, and what pays for it. */
export function Price({ proxies, subscription }: Props) {
  if (!(proxies > 0) || !subscription) return <p className="figure">—</p>;
  const { account_discount_percentage: discount, free_credits: credit } = subscription;
  const price = Math.max(LOWEST, proxies * PROXY) * (1 - discount / 100);
  return (
    <p className="figure">
      {money(price)}{' '}
      <small>
        a month,{' '}
        {credit >= price ? `from your credit of ${money(credit)}` : `${money(price - credit)} of it from your card`}
      </small>
    </p>
  );
}
