import type { Read } from '../upstream/call.ts';
import type { Operation } from '../upstream/operation.ts';
import { operations } from '../upstream/operations/index.ts';

/** One read, or the payment method that a subscription names: then the read only tells what it looks like. */
export interface Section extends Read {
  /** Its failure fails the whole. */
  readonly required?: true;
  /** Makes it a card: the section, before this one, whose `payment_method` is the card's id. */
  readonly cardOf?: string;
}

/** `query`: without the question mark. */
const read = (operation: Operation, query = ''): Section => ({ operation, input: { query } });

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  readonly path: `/bff/v1/${string}`;
  readonly summary: string;
  /** In the order in which they are answered. */
  readonly sections: Readonly<Record<string, Section>>;
}

const SUBSCRIPTION: Section = { ...read(operations.getSubscription), required: true };
const CARD: Section = { ...read(operations.getPaymentMethod), cardOf: 'subscription' };

export const accountOverview: Overview = {
  id: 'getAccountOverview',
  path: '/bff/v1/account-overview',
  summary: 'Subscription, its card, open notifications and referral config',
  sections: {
    subscription: SUBSCRIPTION,
    payment_method: CARD,
    notifications: read(operations.listNotifications, 'dismissed_at__isnull=True'),
    referral_config: read(operations.getReferralConfig),
  },
};

const billingOverview: Overview = {
  id: 'getBillingOverview',
  path: '/bff/v1/billing-overview',
  summary: 'Subscription, its card, transactions and pending payments',
  sections: {
    subscription: SUBSCRIPTION,
    payment_method: CARD,
    transactions: read(operations.listTransactions),
    pending_payments: read(operations.listPendingPayments),
  },
};

export const referralOverview: Overview = {
  id: 'getReferralOverview',
  path: '/bff/v1/referral-overview',
  summary: 'Referral config, credits, earn-outs and channels',
  sections: {
    referral_config: { ...read(operations.getReferralConfig), required: true },
    credits: read(operations.listReferralCredits),
    earn_outs: read(operations.listEarnOuts),
    channels: read(operations.listReferralChannels),
  },
};

export const allOverviews: readonly Overview[] = [accountOverview, billingOverview, referralOverview];
