import { operations } from '../../upstream/operations/index.ts';
import type { Overview } from '../overview.ts';

export const accountOverview: Overview = {
  id: 'getAccountOverview',
  path: '/bff/v1/account-overview',
  summary: 'Subscription, its card, open notifications and referral config',
  sections: {
    subscription: { from: 'read', operation: operations.getSubscription, required: true },
    payment_method: { from: 'card', of: 'subscription', operation: operations.getPaymentMethod },
    notifications: { from: 'read', operation: operations.listNotifications, query: 'dismissed_at__isnull=True' },
    referral_config: { from: 'read', operation: operations.getReferralConfig },
  },
};
