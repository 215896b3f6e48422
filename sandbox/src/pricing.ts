import * as z from 'zod';
import { usd } from './state.ts';

const integer = z.number().refine(Number.isInteger, 'expected an integer');
const count = integer.min(0);
const flag = z.boolean().default(false);
const oneOf = <const T extends readonly string[]>(...names: T) => z.string().pipe(z.enum(names));

const regions = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

/** `ZZ`, which the document has, is no country but has a name. */
const isCountry = (code: string) => /^[A-Z]{2}$/.test(code) && regions.of(code) !== undefined;

const countries = z.record(z.string(), count).superRefine((wanted, context) => {
  for (const code of Object.keys(wanted).filter((one) => !isCountry(one)))
    context.addIssue({ code: 'custom', path: [code], message: 'expected a two-letter country code' });
  if (Object.values(wanted).every((proxies) => proxies === 0))
    context.addIssue({ code: 'custom', message: 'expected at least one proxy' });
});

/**
 * The body of a purchase. The document names no field that has to be there, but a plan without a proxy is none. Other fields of the
 * pricing endpoint are accepted and ignored.
 */
export const purchaseBody = z.looseObject({
  proxy_type: oneOf('shared', 'semidedicated', 'dedicated').default('shared'),
  proxy_subtype: oneOf('default', 'premium', 'isp', 'residential').default('default'),
  proxy_countries: countries,
  bandwidth_limit: count.default(0),
  on_demand_refreshes_total: count.default(0),
  automatic_refresh_frequency: count.default(0),
  proxy_replacements_total: count.default(0),
  subusers_total: count.default(0),
  is_unlimited_ip_authorizations: flag,
  is_high_concurrency: flag,
  is_2x_concurrency: flag,
  is_high_priority_network: flag,
  high_quality_ips_only: flag,
  term: oneOf('monthly', 'yearly').default('monthly'),
  behavior: z.string().optional(),
  payment_method: z.union([z.string(), integer]).nullish(),
  recaptcha: z.string().nullish(),
});

export type PurchaseBody = z.infer<typeof purchaseBody>;

const LOWEST_PRICE = 2.5;

/** Each costs a dollar. */
const OPTIONS = [
  'is_unlimited_ip_authorizations',
  'is_high_concurrency',
  'is_2x_concurrency',
  'is_high_priority_network',
  'high_quality_ips_only',
] as const;

/** A price list of the sandbox's own, since pricing is not documented: half a dollar a proxy, a cent a GB. */
export function priceOf(body: PurchaseBody, discountPercentage: number): number {
  const proxies = Object.values(body.proxy_countries).reduce((sum, proxiesThere) => sum + proxiesThere, 0);
  const options = OPTIONS.filter((name) => body[name]).length;
  const extras = body.on_demand_refreshes_total * 0.25 + body.subusers_total * 0.1 + options;
  const month = Math.max(LOWEST_PRICE, proxies * 0.5 + body.bandwidth_limit * 0.01 + extras);
  const months = body.term === 'yearly' ? 12 : 1;
  return usd(month * months * (1 - discountPercentage / 100));
}
