import type { Instant } from '../time.ts';
import type { Dated } from './dated.ts';

export interface ReferralConfig extends Dated {
  id: number;
  mode: 'payout' | 'credits';
  wallet_payout_email: string | null;
  id_verification_required: boolean;
  credits_earned: number;
  payouts_earned: number;
  total_credits_earned: number;
  total_payouts_earned: number;
  number_of_users_referred: number;
  number_of_users_upgraded: number;
  earn_out_frequency: string;
  next_earn_out_date: Instant;
  minimum_earn_out_amount: number;
  referral_code: string;
  referral_url: string;
  promo_type: string;
  promo_value: number;
  referral_maximum_credits: number;
  referral_credit_ratio: number;
  referral_payment_pending_days: string;
}

export interface ReferralCredit extends Dated {
  id: number;
  /** One seeded id is larger than a number can hold: legal JSON that a client has to pass on unchanged. */
  user_id: number | bigint;
  mode: 'payout' | 'credits';
  amount: number;
  status: 'pending' | 'completed' | 'reverted';
  referral_channel: number | null;
  referral_channel_code: string | null;
  reverted_at: Instant | null;
}

export interface EarnOut extends Dated {
  id: number;
  mode: 'payout' | 'credits';
  wallet_payout_email: string | null;
  amount: number;
  status: 'processing' | 'completed' | 'failed';
  error_reason: string | null;
}

export interface ReferralChannel {
  id: number;
  code: string;
  description: string;
  promo_type: 'percent_off' | 'value_off';
  promo_value: string;
  is_active: boolean;
  is_recurring: boolean;
  start_date: Instant;
  end_date: Instant | null;
  total_uses: number;
  total_commission: number;
  total_revenue: number;
  initial_rate: string;
  ongoing_rate: string;
  initial_rate_period_days: number;
  max_earnings_per_referred: string;
  created_at: Instant;
}
