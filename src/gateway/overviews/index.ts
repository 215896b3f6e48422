import type { Overview } from '../overview.ts';
import { accountOverview } from './account.ts';
import { billingOverview } from './billing.ts';
import { referralOverview } from './referral.ts';

export const allOverviews: readonly Overview[] = [accountOverview, billingOverview, referralOverview];
