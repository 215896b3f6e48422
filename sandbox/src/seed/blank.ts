import { example } from '../resource.ts';
import type { Account, Plan } from '../state.ts';
import { DAY, TERM, type Instant } from '../time.ts';

/** What a seed is made for. The identifiers of an account are its base and something below a thousand. */
export interface Seed {
  readonly base: number;
  readonly now: Instant;
}

/** Someone who registered at `createdAt`, with the free plan and nothing else. */
export function blankAccount(name: string, { base, now }: Seed, createdAt = now): Account {
  const plan: Plan = {
    id: base + 3,
    price: 0,
    paid: false,
    refreshesAvailable: 0,
    startedAt: createdAt,
    endedAt: null,
  };
  const termStart = now - ((now - createdAt) % TERM);
  return {
    name,
    refusal: null,
    apiKeys: [],
    paymentMethods: [],
    transactions: [],
    pendingPayments: [],
    plans: [plan],
    subscription: example('getSubscription', createdAt, {
      id: base + 5,
      plan: plan.id,
      free_credits: 0,
      start_date: termStart,
      end_date: termStart + TERM,
      renewals_paid: 0,
    }),
    referralConfig: example('getReferralConfig', createdAt, {
      id: base + 9,
      credits_earned: 0,
      total_credits_earned: 0,
      number_of_users_referred: 0,
      number_of_users_upgraded: 0,
      next_earn_out_date: now + 6.5 * DAY,
      minimum_earn_out_amount: 15,
      referral_code: name,
      referral_url: `https://provider.example/?referral_code=${name}`,
    }),
    referralCredits: [],
    earnOuts: [],
    referralChannels: [],
    subusers: [],
    ipAuthorizations: [],
    notifications: [],
    idVerification: example('startIdVerification', createdAt, { id: base + 11, state: 'requested', client_secret: '' }),
    verificationFlows: [],
  };
}
