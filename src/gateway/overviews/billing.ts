import { operations } from '../../upstream/operations/index.ts';
import type { Overview } from '../overview.ts';

export const billingOverview: Overview = {
  id: 'getBillingOverview',
  path: '/bff/v1/billing-overview',
  summary: 'Subscription, its card, transactions and pending payments',
  sections: {
    subscription: { from: 'read', operation: operations.getSubscription, required: true },
    payment_method: { from: 'card', of: 'subscription', operation: operations.getPaymentMethod },
    transactions: { from: 'read', operation: operations.listTransactions },
    pending_payments: { from: 'read', operation: operations.listPendingPayments },
  },
};
