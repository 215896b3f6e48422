import type { operations } from './openapi.ts';
import { routes } from './routes.ts';

type ReadId = Exclude<Extract<keyof operations, `get${string}` | `list${string}`>, 'getSession'>;

/** Reads that a write changes, overviews among them. */
const TOUCHED = {
  updateReferralConfig: ['getReferralConfig', 'getAccountOverview', 'getReferralOverview'],
  deletePaymentMethod: [
    'listPaymentMethods',
    'getPaymentMethod',
    'getSubscription',
    'getAccountOverview',
    'getBillingOverview',
  ],
  refreshSubuser: ['getSubuser'],
  refreshProxyList: ['getSubuser'],
  deleteIpAuthorization: ['getIpAuthorization'],
  createApiKey: ['getApiKey'],
  startIdVerification: ['getVerificationFlow'],
  purchasePlan: undefined, // all
} as const satisfies Partial<Record<keyof operations, readonly ReadId[] | undefined>>;

/** Which reads have to be made again once this write is done, or may have been: their operation ids. */
export const touches = (write: keyof typeof TOUCHED): readonly ReadId[] =>
  TOUCHED[write] ?? (Object.keys(routes) as ReadId[]).filter((id) => /^(get(?!Session|Outcome)|list)/.test(id));
