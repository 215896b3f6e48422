import type { AccountName } from '../accounts.ts';
import { datedAt } from '../resources/dated.ts';
import type { Account, Plan } from '../state.ts';
import { DAY, HOUR, TERM, type Instant } from '../time.ts';
import { seedCard, seedPendingPayments, seedTransactions } from './billing.ts';
import { blankAccount } from './blank.ts';
import { seedNotifications, seedVerificationFlow } from './notice.ts';
import { seedIpAuthorizations, seedSubusers } from './proxy.ts';
import { seedChannels, seedCredits, seedEarnOuts, seedTotals } from './referral.ts';

/** Seeded identifiers are the account's base and one of these. */
const AT = {
  oldPlan: 2,
  plan: 3,
  subscription: 5,
  referralConfig: 9,
  idVerification: 11,
  apiKey: 12,
  verificationFlow: 21,
  channels: 51,
  cards: 71,
  subusers: 81,
  ipAuthorizations: 91,
  notifications: 101,
  transactions: 201,
  pendingPayments: 301,
  earnOuts: 401,
  credits: 501,
} as const;

/** Old enough that all ninety days of activity belong to the plan. */
const AGE = 210 * DAY;

/** What all named accounts have: the free plan, and an API key that is the account's credential. */
function base(name: AccountName, at: number, now: Instant): Account {
  const ids = {
    plan: at + AT.plan,
    subscription: at + AT.subscription,
    referralConfig: at + AT.referralConfig,
    idVerification: at + AT.idVerification,
  };
  const createdAt = now - AGE - 12 * DAY;
  const key = { id: at + AT.apiKey, key: `sandbox-${name}-key`, label: 'dashboard', ...datedAt(createdAt) };
  return { ...blankAccount({ name, ids, createdAt, now }), apiKeys: [key] };
}

/** The same with a paid plan, an older one, and one card. */
function withPlan(name: AccountName, at: number, now: Instant): Account {
  const account = base(name, at, now);
  const card = seedCard(at + AT.cards, '4242', now - AGE);
  const startedAt = now - AGE;
  const plan: Plan = {
    id: at + AT.plan,
    price: 25,
    paid: true,
    refreshesAvailable: 2,
    startedAt,
    endedAt: null,
  };
  const old: Plan = { ...plan, id: at + AT.oldPlan, paid: false, startedAt: startedAt - 12 * DAY, endedAt: startedAt };
  return {
    ...account,
    paymentMethods: [card],
    plans: [old, plan],
    subscription: { ...account.subscription, payment_method: card.id, renewals_paid: 7 },
  };
}

function paid(at: number, now: Instant): Account {
  const account = withPlan('paid', at, now);
  const [card] = account.paymentMethods;
  if (!card) return account;
  const plan = account.subscription.plan;
  const transactions = seedTransactions(30, at + AT.transactions, card, now);
  const pending = { id: at + AT.pendingPayments, card: card.id, plan, startedAt: now - DAY };
  const credits = seedCredits(6, at + AT.credits, [], now);
  return {
    ...account,
    paymentMethods: [
      card,
      seedCard(at + AT.cards + 1, '4444', now - 90 * DAY),
      seedCard(at + AT.cards + 2, '0002', now - 30 * DAY),
    ],
    subscription: {
      ...account.subscription,
      free_credits: 10,
      promo_type: 'first_time_value_off',
      promo_value: 5,
      retention_discount_resi_20_available: true,
    },
    transactions,
    pendingPayments: transactions.slice(-1).flatMap((last) => seedPendingPayments(pending, last)),
    referralConfig: { ...account.referralConfig, credits_earned: 12.5, ...seedTotals(credits) },
    referralCredits: credits,
    earnOuts: seedEarnOuts(2, at + AT.earnOuts, now),
    subusers: seedSubusers(at + AT.subusers, plan, now),
    ipAuthorizations: seedIpAuthorizations(at + AT.ipAuthorizations, [plan, at + AT.oldPlan], now),
    requestInterval: 2 * HOUR,
    notifications: seedNotifications(at + AT.notifications, plan, now),
    verificationFlows: [seedVerificationFlow(at + AT.verificationFlow, now)],
  };
}

function nocard(at: number, now: Instant): Account {
  const account = base('nocard', at, now);
  return {
    ...account,
    idVerification: { ...account.idVerification, state: 'verified', verified_at: now - 100 * DAY },
    notifications: seedNotifications(at + AT.notifications, account.subscription.plan, now).slice(0, 2),
  };
}

function affiliate(at: number, now: Instant): Account {
  const account = withPlan('affiliate', at, now);
  const channels = seedChannels(at + AT.channels, now);
  const credits = seedCredits(240, at + AT.credits, channels, now);
  return {
    ...account,
    subscription: { ...account.subscription, free_credits: 412.5 },
    transactions: account.paymentMethods.flatMap((card) => seedTransactions(3, at + AT.transactions, card, now)),
    referralConfig: {
      ...account.referralConfig,
      wallet_payout_email: 'affiliate@wallet.example',
      id_verification_required: true,
      credits_earned: 37.5,
      payouts_earned: 20,
      ...seedTotals(credits),
    },
    referralCredits: credits,
    earnOuts: seedEarnOuts(30, at + AT.earnOuts, now),
    referralChannels: channels,
    notifications: seedNotifications(at + AT.notifications, account.subscription.plan, now).slice(1),
  };
}

function unverified(at: number, now: Instant): Account {
  const account = base('unverified', at, now);
  return {
    ...account,
    idVerification: {
      ...account.idVerification,
      state: 'failed',
      client_secret: 'sandbox_verification_seed_secret',
      verification_failure_times: 2,
      updated_at: now - DAY,
    },
    verificationOutcome: 'failed',
    verificationFlows: [seedVerificationFlow(at + AT.verificationFlow, now)],
  };
}

function paused(at: number, now: Instant): Account {
  const account = withPlan('paused', at, now);
  return {
    ...account,
    subscription: {
      ...account.subscription,
      paused: true,
      reactivation_date: now + 7 * DAY,
      reactivation_period_left: '12 00:00:00',
    },
  };
}

function lapsed(at: number, now: Instant): Account {
  const account = withPlan('lapsed', at, now);
  const endedAt = now - 3 * DAY;
  return {
    ...account,
    plans: account.plans.map((plan) => ({ ...plan, paid: false })),
    subscription: {
      ...account.subscription,
      renewals_enabled: false,
      start_date: endedAt - TERM,
      end_date: endedAt,
    },
  };
}

type Seed = (at: number, now: Instant) => Account;

export const seedAccounts: Record<AccountName, Seed> = {
  paid,
  nocard,
  affiliate,
  unverified,
  suspended: (at, now) => ({ ...withPlan('suspended', at, now), refusal: 'account_suspended' }),
  twofactor: (at, now) => ({ ...withPlan('twofactor', at, now), refusal: '2fa_needed' }),
  paused,
  lapsed,
};
