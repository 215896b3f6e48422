import { from, overview, type Overview } from '../gateway/overview.ts';
import { defineRows } from '../upstream/operation.ts';
import { account, notification, social, verification } from './account.ts';
import { billing } from './billing.ts';
import { proxy } from './proxy.ts';
import { referral } from './referral.ts';

/** The 29 endpoints of the account API of a proxy provider (`docs/upstream-api.md`), by operation id. */
export const proxyAccount = defineRows({
  ...account,
  ...billing,
  ...referral,
  ...proxy,
  ...notification,
  ...verification,
  ...social,
});

const rows = proxyAccount;
const subscription = { read: rows.getSubscription, required: true } as const;
const id = from('subscription', 'payment_method', rows.listPaymentMethods);
const card = { read: rows.getPaymentMethod, params: { id } };

export const accountOverview = overview(
  '/bff/v1/account-overview',
  {
    subscription,
    payment_method: card,
    notifications: { read: rows.listNotifications, query: { dismissed_at__isnull: 'True' } },
    referral_config: { read: rows.getReferralConfig },
  },
  undefined,
  { summary: 'Subscription, its card, open notifications and referral config' },
);

export const billingOverview = overview(
  '/bff/v1/billing-overview',
  {
    subscription,
    payment_method: card,
    transactions: { read: rows.listTransactions },
    pending_payments: { read: rows.listPendingPayments },
  },
  undefined,
  { summary: 'Subscription, its card, transactions and pending payments' },
);

export const referralOverview = overview(
  '/bff/v1/referral-overview',
  {
    referral_config: { read: rows.getReferralConfig, required: true },
    credits: { read: rows.listReferralCredits },
    earn_outs: { read: rows.listEarnOuts },
    channels: { read: rows.listReferralChannels },
  },
  undefined,
  { summary: 'Referral config, credits, earn-outs and channels' },
);

export const overviews: readonly Overview[] = [accountOverview, billingOverview, referralOverview];
