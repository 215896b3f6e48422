import type { Overview, Section } from '../gateway/overviews.ts';
import type { Operation } from '../upstream/operation.ts';
import { proxyAccount } from './rows.ts';

/** `query`: without the question mark. */
const read = (operation: Operation, query = ''): Section => ({ operation, input: { query } });

const SUBSCRIPTION: Section = { ...read(proxyAccount.getSubscription), required: true };
const CARD: Section = { ...read(proxyAccount.getPaymentMethod), cardOf: 'subscription' };

export const accountOverview: Overview = {
  id: 'getAccountOverview',
  path: '/bff/v1/account-overview',
  summary: 'Subscription, its card, open notifications and referral config',
  sections: {
    subscription: SUBSCRIPTION,
    payment_method: CARD,
    notifications: read(proxyAccount.listNotifications, 'dismissed_at__isnull=True'),
    referral_config: read(proxyAccount.getReferralConfig),
  },
};

export const billingOverview: Overview = {
  id: 'getBillingOverview',
  path: '/bff/v1/billing-overview',
  summary: 'Subscription, its card, transactions and pending payments',
  sections: {
    subscription: SUBSCRIPTION,
    payment_method: CARD,
    transactions: read(proxyAccount.listTransactions),
    pending_payments: read(proxyAccount.listPendingPayments),
  },
};

export const referralOverview: Overview = {
  id: 'getReferralOverview',
  path: '/bff/v1/referral-overview',
  summary: 'Referral config, credits, earn-outs and channels',
  sections: {
    referral_config: { ...read(proxyAccount.getReferralConfig), required: true },
    credits: read(proxyAccount.listReferralCredits),
    earn_outs: read(proxyAccount.listEarnOuts),
    channels: read(proxyAccount.listReferralChannels),
  },
};

export const overviews: readonly Overview[] = [accountOverview, billingOverview, referralOverview];
