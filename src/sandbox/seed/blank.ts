import type { Dated } from '../resources/dated.ts';
import type { Subscription } from '../resources/billing.ts';
import type { IdVerification } from '../resources/account.ts';
import type { ReferralConfig } from '../resources/referral.ts';
import type { Account, Plan } from '../state.ts';
import { DAY, TERM } from '../time.ts';
import type { Instant } from '../time.ts';

interface BlankIds {
  readonly plan: number;
  readonly subscription: number;
  readonly referralConfig: number;
  readonly idVerification: number;
}

export interface Birth {
  readonly name: string;
  readonly ids: BlankIds;
  readonly bornAt: Instant;
  readonly now: Instant;
}

/** An account as it is right after registration: the free plan and nothing else. */
export function blankAccount(birth: Birth): Account {
  return {
    name: birth.name,
    refusal: null,
    apiKeys: [],
    paymentMethods: [],
    transactions: [],
    pendingPayments: [],
    charges: [],
    plans: [freePlan(birth)],
    subscription: blankSubscription(birth),
    referralConfig: blankReferralConfig(birth),
    referralCredits: [],
    earnOuts: [],
    referralChannels: [],
    subusers: [],
    ipAuthorizations: [],
    requestInterval: null,
    notifications: [],
    idVerification: blankIdVerification(birth),
    verificationOutcome: 'verified',
    verificationFlows: [],
  };
}

export const datedAt = (instant: Instant): Dated => ({ created_at: instant, updated_at: instant });

function freePlan({ ids, bornAt }: Birth): Plan {
  return { id: ids.plan, price: 0, paid: false, refreshesAvailable: 0, startedAt: bornAt, endedAt: null };
}

function blankSubscription({ bornAt, ids, now }: Birth): Subscription {
  const startedAt = now - ((now - bornAt) % TERM);
  return {
    id: ids.subscription,
    plan: ids.plan,
    payment_method: null,
    free_credits: 0,
    term: 'monthly',
    start_date: startedAt,
    end_date: startedAt + TERM,
    renewals_paid: 0,
    renewals_enabled: true,
    failed_payment_times: 0,
    account_discount_percentage: 0,
    promotion_available_first_time_renewal_25_off: false,
    customizable: true,
    paused: false,
    reactivation_date: null,
    reactivation_period_left: null,
    promo_type: null,
    promo_value: null,
    retention_discount_resi_20_available: false,
    throttled: false,
    ...datedAt(bornAt),
  };
}

function blankReferralConfig({ bornAt, ids, name, now }: Birth): ReferralConfig {
  return {
    id: ids.referralConfig,
    mode: 'credits',
    wallet_payout_email: null,
    id_verification_required: false,
    credits_earned: 0,
    payouts_earned: 0,
    total_credits_earned: 0,
    total_payouts_earned: 0,
    number_of_users_referred: 0,
    number_of_users_upgraded: 0,
    earn_out_frequency: '7 00:00:00',
    next_earn_out_date: now + 6.5 * DAY,
    minimum_earn_out_amount: 15,
    referral_code: name,
    referral_url: `https://provider.example/?referral_code=${name}`,
    promo_type: 'first_time_value_off',
    promo_value: 5,
    referral_maximum_credits: 250,
    referral_credit_ratio: 0.25,
    referral_payment_pending_days: '14 00:00:00',
    ...datedAt(bornAt),
  };
}

function blankIdVerification({ bornAt, ids }: Birth): IdVerification {
  return {
    id: ids.idVerification,
    state: 'requested',
    client_secret: '',
    verification_failure_times: 0,
    max_verification_failure_times: 3,
    verified_at: null,
    ...datedAt(bornAt),
  };
}
