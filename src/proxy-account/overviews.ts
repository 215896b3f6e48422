import { overview } from '../gateway/overview.ts';
import { from, type Overview } from '../gateway/overview.ts';
import { proxyAccount as rows } from './rows.ts';

const subscription = { read: rows.getSubscription, required: true } as const;
/** That of the subscription. */
const card = { read: rows.getPaymentMethod, id: from('subscription', 'payment_method', rows.listPaymentMethods) };

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
