import type { IdVerification } from '../resources/account.ts';
import type { Subscription } from '../resources/billing.ts';
import { datedAt } from '../resources/dated.ts';
import type { ReferralConfig } from '../resources/referral.ts';
import type { Account, Plan } from '../state.ts';
import { DAY, TERM, type Instant } from '../time.ts';

interface BlankIds {
  readonly plan: number;
  readonly subscription: number;
  readonly referralConfig: number;
  readonly idVerification: number;
}

interface BlankSeed {
  readonly name: string;
  readonly ids: BlankIds;
  readonly createdAt: Instant;
  readonly now: Instant;
}

/** The account of someone who has just registered. */
export function newAccount(name: string, now: Instant, nextId: () => number): Account {
  const ids = { plan: nextId(), subscription: nextId(), referralConfig: nextId(), idVerification: nextId() };
  return blankAccount({ name, ids, createdAt: now, now });
}

/** An account with the free plan and nothing else. */
export function blankAccount(seed: BlankSeed): Account {
  return {
    name: seed.name,
    refusal: null,
    apiKeys: [],
    paymentMethods: [],
    transactions: [],
    pendingPayments: [],
    charges: [],
    plans: [freePlan(seed)],
    subscription: blankSubscription(seed),
    referralConfig: blankReferralConfig(seed),
    referralCredits: [],
    earnOuts: [],
    referralChannels: [],
    subusers: [],
    ipAuthorizations: [],
    requestInterval: null,
    notifications: [],
    idVerification: blankIdVerification(seed),
    verificationOutcome: 'verified',
    verificationFlows: [],
  };
}

function freePlan({ ids, createdAt }: BlankSeed): Plan {
  return { id: ids.plan, price: 0, paid: false, refreshesAvailable: 0, startedAt: createdAt, endedAt: null };
}

function blankSubscription({ createdAt, ids, now }: BlankSeed): Subscription {
  const startedAt = now - ((now - createdAt) % TERM);
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
    ...datedAt(createdAt),
  };
}

function blankReferralConfig({ createdAt, ids, name, now }: BlankSeed): ReferralConfig {
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
    ...datedAt(createdAt),
  };
}

function blankIdVerification({ createdAt, ids }: BlankSeed): IdVerification {
  return {
    id: ids.idVerification,
    state: 'requested',
    client_secret: '',
    verification_failure_times: 0,
    max_verification_failure_times: 3,
    verified_at: null,
    ...datedAt(createdAt),
  };
}
