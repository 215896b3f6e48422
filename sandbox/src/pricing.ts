import * as z from 'zod/mini';
import { operations } from './operations.ts';
import { usd } from './state.ts';

const count = z.int().check(z.minimum(0));

const countries = z.record(z.string(), count).check(
  z.refine(
    (wanted) => Object.keys(wanted).every((code) => /^[A-Z]{2}$/.test(code)),
    'expected two-letter country codes',
  ),
  z.refine((wanted) => Object.values(wanted).some((proxies) => proxies !== 0), 'expected at least one proxy'),
);

/** The body of a purchase. The document names no field that has to be there, but a plan without a proxy is none. */
export const purchaseBody = z.extend(operations.purchasePlan.body.schema, {
  proxy_type: z._default(z.enum(['shared', 'semidedicated', 'dedicated']), 'shared'),
  proxy_subtype: z._default(z.enum(['default', 'premium', 'isp', 'residential']), 'default'),
  proxy_countries: countries,
  bandwidth_limit: z._default(count, 0),
  on_demand_refreshes_total: z._default(count, 0),
  term: z._default(z.enum(['monthly', 'yearly']), 'monthly'),
});

export type PurchaseBody = z.infer<typeof purchaseBody>;

const LOWEST_PRICE = 2.5;

/** A price list of the sandbox's own, since pricing is not documented: half a dollar a proxy, a cent a GB, a dollar an option. */
export function priceOf(body: PurchaseBody, discountPercentage: number): number {
  const proxies = Object.values(body.proxy_countries).reduce((sum, proxiesThere) => sum + proxiesThere, 0);
  const options = Object.values(body).filter((value) => value === true).length;
  const extras = body.on_demand_refreshes_total * 0.25 + options;
  const month = Math.max(LOWEST_PRICE, proxies * 0.5 + body.bandwidth_limit * 0.01 + extras);
  const months = body.term === 'yearly' ? 12 : 1;
  return usd(month * months * (1 - discountPercentage / 100));
}
