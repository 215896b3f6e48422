import type { Operation } from '../upstream/operation.ts';
import { operations } from '../upstream/operations/index.ts';

/** One read, or the payment method that a subscription names. */
export interface Section {
  /** What it reads; for a card only what it looks like. */
  readonly operation: Operation;
  /** Query of the read, without the question mark. */
  readonly query?: string;
  /** Its failure fails the whole. */
  readonly required?: true;
  /** Makes it a card: the section, before this one, whose `payment_method` is the card's id. */
  readonly cardOf?: string;
}

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  readonly path: `/bff/v1/${string}`;
  readonly summary: string;
  /** In the order in which they are answered. */
  readonly sections: Readonly<Record<string, Section>>;
}

const SUBSCRIPTION: Section = { operation: operations.getSubscription, required: true };
const CARD: Section = { operation: operations.getPaymentMethod, cardOf: 'subscription' };

export const accountOverview: Overview = {
  id: 'getAccountOverview',
  path: '/bff/v1/account-overview',
  summary: 'Subscription, its card, open notifications and referral config',
  sections: {
    subscription: SUBSCRIPTION,
    payment_method: CARD,
    notifications: { operation: operations.listNotifications, query: 'dismissed_at__isnull=True' },
    referral_config: { operation: operations.getReferralConfig },
  },
};

const billingOverview: Overview = {
  id: 'getBillingOverview',
  path: '/bff/v1/billing-overview',
  summary: 'Subscription, its card, transactions and pending payments',
  sections: {
    subscription: SUBSCRIPTION,
    payment_method: CARD,
    transactions: { operation: operations.listTransactions },
    pending_payments: { operation: operations.listPendingPayments },
  },
};

export const referralOverview: Overview = {
  id: 'getReferralOverview',
  path: '/bff/v1/referral-overview',
  summary: 'Referral config, credits, earn-outs and channels',
  sections: {
    referral_config: { operation: operations.getReferralConfig, required: true },
    credits: { operation: operations.listReferralCredits },
    earn_outs: { operation: operations.listEarnOuts },
    channels: { operation: operations.listReferralChannels },
  },
};

export const allOverviews: readonly Overview[] = [accountOverview, billingOverview, referralOverview];
