import { operations } from '../../upstream/operations/index.ts';
import type { Overview } from '../overview.ts';

export const referralOverview: Overview = {
  id: 'getReferralOverview',
  path: '/bff/v1/referral-overview',
  summary: 'Referral config, credits, earn-outs and channels',
  sections: {
    referral_config: { from: 'read', operation: operations.getReferralConfig, required: true },
    credits: { from: 'read', operation: operations.listReferralCredits },
    earn_outs: { from: 'read', operation: operations.listEarnOuts },
    channels: { from: 'read', operation: operations.listReferralChannels },
  },
};
