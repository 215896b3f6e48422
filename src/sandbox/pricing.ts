import * as z from 'zod';
import { usd } from './state.ts';

const count = z.int('A valid integer is required.').min(0, 'Ensure this value is greater than or equal to 0.');
const flag = z.boolean('Must be a valid boolean.');

/** The body of a purchase. Other fields of the pricing endpoint are accepted and ignored. */
export const purchaseBody = z.looseObject({
  proxy_type: z.string('Not a valid string.').optional(),
  proxy_subtype: z.string('Not a valid string.').optional(),
  proxy_countries: z.record(z.string(), count, 'Expected a dictionary of items.').default({}),
  bandwidth_limit: count.default(0),
  on_demand_refreshes_total: count.default(0),
  automatic_refresh_frequency: count.default(0),
  proxy_replacements_total: count.default(0),
  subusers_total: count.default(0),
  is_unlimited_ip_authorizations: flag.default(false),
  is_high_concurrency: flag.default(false),
  is_2x_concurrency: flag.default(false),
  is_high_priority_network: flag.default(false),
  high_quality_ips_only: flag.default(false),
  term: z.enum(['monthly', 'yearly'], 'Not a valid choice.').default('monthly'),
  behavior: z.string('Not a valid string.').optional(),
  payment_method: z.union([z.string(), z.int()], 'Not a valid choice.').nullish(),
  recaptcha: z.string('Not a valid string.').nullish(),
});

export type PurchaseBody = z.infer<typeof purchaseBody>;

const LOWEST_PRICE = 2.5;

/** A price list of the sandbox's own, since pricing is not documented: half a dollar a proxy, a cent a GB. */
export function priceOf(body: PurchaseBody, discountPercentage: number): number {
  const proxies = Object.values(body.proxy_countries).reduce((sum, proxiesThere) => sum + proxiesThere, 0);
  const extras = body.on_demand_refreshes_total * 0.25 + body.subusers_total * 0.1 + surcharges(body);
  const month = Math.max(LOWEST_PRICE, proxies * 0.5 + body.bandwidth_limit * 0.01 + extras);
  const months = body.term === 'yearly' ? 12 : 1;
  return usd(month * months * (1 - discountPercentage / 100));
}

/** A dollar for each option. */
function surcharges(body: PurchaseBody): number {
  const options = [
    body.is_unlimited_ip_authorizations,
    body.is_high_concurrency,
    body.is_2x_concurrency,
    body.is_high_priority_network,
    body.high_quality_ips_only,
  ];
  return options.filter(Boolean).length;
}
