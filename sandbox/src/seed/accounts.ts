import { type AccountName, sandboxAccounts } from '../accounts.ts';
import { DECLINED_LAST4 } from '../payments.ts';
import { example } from '../resource.ts';
import type { Account, Credential, PaymentMethod, Plan, World } from '../state.ts';
import { DAY, TERM, type Instant } from '../time.ts';
import { seedCard, seedPendingPayments, seedTransactions } from './billing.ts';
import { blankAccount, type Seed } from './blank.ts';
import { seedNotifications } from './notifications.ts';
import { seedIpAuthorizations, seedSubusers } from './proxy.ts';
import { seedChannels, seedCredits, seedEarnOuts } from './referral.ts';

const FIRST_NEW_ID = 100_001;

/** The data before the first call. The same `now` gives the same data. */
export function createWorld(now: Instant): World {
  let lastId = FIRST_NEW_ID - 1;
  const accounts = new Map<string, Account>();
  const credentials = new Map<string, Credential>();
  for (const [index, { name, key }] of sandboxAccounts.entries()) {
    const account = seedAccount(name, key, { base: (index + 1) * 1000, now });
    accounts.set(name, account);
    credentials.set(key, { account, kind: 'dashboard' });
  }
  return { accounts, credentials, nextId: () => (lastId += 1) };
}

/** Old enough that all ninety days of activity belong to the plan. */
const AGE = 210 * DAY;

/** A named account: an API key that is its credential, and what it differs in from one that is new. */
function seedAccount(name: AccountName, key: string, seed: Seed): Account {
  const registeredAt = seed.now - AGE - 12 * DAY;
  const account = blankAccount(name, seed, registeredAt);
  account.apiKeys = [example('getApiKey', registeredAt, { id: seed.base + 12, key, label: 'dashboard' })];
  differences[name](account, seed);
  return account;
}

type Difference = (account: Account, seed: Seed) => void;

/** A paid plan, the free one before it, and the card that pays for it. */
function addPlan(account: Account, { base, now }: Seed): PaymentMethod {
  const startedAt = now - AGE;
  const plan: Plan = { id: base + 3, price: 25, paid: true, refreshesAvailable: 2, startedAt, endedAt: null };
  const card = seedCard(base + 71, '4242', startedAt);
  account.plans = [...account.plans.map((free) => ({ ...free, id: base + 2, endedAt: startedAt })), plan];
  account.paymentMethods = [card];
  account.subscription.payment_method = card.id;
  account.subscription.renewals_paid = 7;
  return card;
}

const differences: Readonly<Record<AccountName, Difference>> = {
  paid: (account, seed) => {
    const { base, now } = seed;
    account.transactions = seedTransactions(30, addPlan(account, seed), seed);
    account.paymentMethods.push(seedCard(base + 72, '4444', now - 90 * DAY));
    account.paymentMethods.push(seedCard(base + 73, DECLINED_LAST4, now - 30 * DAY));
    account.pendingPayments = seedPendingPayments(account, seed);
    Object.assign(account.subscription, {
      free_credits: 10,
      promo_type: 'first_time_value_off',
      promo_value: 5,
      retention_discount_resi_20_available: true,
    });
    const referred = { number_of_users_referred: 18, number_of_users_upgraded: 6 };
    Object.assign(account.referralConfig, { credits_earned: 12.5, ...referred });
    account.referralCredits = seedCredits(6, [], seed);
    account.earnOuts = seedEarnOuts(2, seed);
    account.subusers = seedSubusers(base + 3, seed);
    account.ipAuthorizations = seedIpAuthorizations(base + 3, base + 2, seed);
    account.notifications = seedNotifications(seed);
    account.verificationFlows = [verificationFlow(seed)];
  },

  nocard: (account, seed) => {
    account.idVerification.state = 'verified';
    account.idVerification.verified_at = seed.now - 100 * DAY;
    account.notifications = seedNotifications(seed).slice(0, 2);
  },

  affiliate: (account, seed) => {
    account.transactions = seedTransactions(3, addPlan(account, seed), seed);
    account.subscription.free_credits = 412.5;
    account.referralChannels = seedChannels(seed);
    account.referralCredits = seedCredits(240, account.referralChannels, seed);
    account.earnOuts = seedEarnOuts(30, seed);
    account.notifications = seedNotifications(seed).slice(1);
    Object.assign(account.referralConfig, {
      wallet_payout_email: 'affiliate@wallet.example',
      id_verification_required: true,
      credits_earned: 37.5,
      payouts_earned: 20,
      total_credits_earned: 950,
      total_payouts_earned: 115,
      number_of_users_referred: 72,
      number_of_users_upgraded: 60,
    });
  },

  unverified: (account, seed) => {
    account.idVerification.state = 'failed';
    account.idVerification.verification_failure_times = 2;
    account.verificationFlows = [verificationFlow(seed)];
  },

  suspended: (account) => {
    account.refusal = 'account_suspended';
  },

  twofactor: (account) => {
    account.refusal = '2fa_needed';
  },

  paused: (account, seed) => {
    addPlan(account, seed);
    account.subscription.paused = true;
    account.subscription.reactivation_date = seed.now + 7 * DAY;
    account.subscription.reactivation_period_left = '12 00:00:00';
  },

  lapsed: (account, seed) => {
    addPlan(account, seed);
    for (const plan of account.plans) plan.paid = false;
    account.subscription.renewals_enabled = false;
    account.subscription.end_date = seed.now - 3 * DAY;
    account.subscription.start_date = account.subscription.end_date - TERM;
  },
};

const verificationFlow = ({ base, now }: Seed) => example('getVerificationFlow', now - 3 * DAY, { id: base + 21 });
