import type { ApiKey, IdVerification, Notification, VerificationFlow } from './resources/account.ts';
import type { PaymentMethod, PendingPayment, Subscription, Transaction } from './resources/billing.ts';
import type { IpAuthorization, Subuser } from './resources/proxy.ts';
import type { EarnOut, ReferralChannel, ReferralConfig, ReferralCredit } from './resources/referral.ts';
import type { Instant } from './time.ts';

/** The document shows no field of a plan; these are what its rules need. */
export interface Plan {
  readonly id: number;
  /** USD for a term of 30 days; 0 is the free plan. */
  readonly price: number;
  paid: boolean;
  refreshesAvailable: number;
  readonly startedAt: Instant;
  endedAt: Instant | null;
}

/** Something that belongs to a plan rather than to the account. */
export interface OfPlan<T> {
  plan: number;
  readonly item: T;
}

export interface SubuserState extends OfPlan<Subuser> {
  readonly hasCustomList: boolean;
}

/** A payment that the processor has not completed yet. */
export interface Charge {
  readonly payment: PendingPayment;
  readonly amount: number;
  readonly creditsUsed: number;
  readonly dueAt: Instant;
}

export interface Account {
  readonly name: string;
  /** What every call of the account is refused with. */
  readonly refusal: 'account_suspended' | '2fa_needed' | null;
  readonly apiKeys: ApiKey[];
  paymentMethods: PaymentMethod[];
  readonly transactions: Transaction[];
  readonly pendingPayments: PendingPayment[];
  charges: Charge[];
  readonly plans: Plan[];
  readonly subscription: Subscription;
  readonly referralConfig: ReferralConfig;
  readonly referralCredits: ReferralCredit[];
  readonly earnOuts: EarnOut[];
  readonly referralChannels: ReferralChannel[];
  readonly subusers: SubuserState[];
  ipAuthorizations: OfPlan<IpAuthorization>[];
  /** Time between two requests through the proxies; `null`: the account sends none. */
  readonly requestInterval: number | null;
  readonly notifications: Notification[];
  readonly idVerification: IdVerification;
  /** How a pending ID verification of this account ends. */
  readonly verificationOutcome: 'verified' | 'failed';
  readonly verificationFlows: VerificationFlow[];
}

export interface Credential {
  readonly account: Account;
  /** `programmatic`: made with endpoint 2, and so not allowed where only a person is. */
  readonly kind: 'dashboard' | 'programmatic';
}

export interface World {
  /** By name, which is also the identity that social login knows. */
  readonly accounts: Map<string, Account>;
  readonly credentials: Map<string, Credential>;
  /** Identifiers of what is made later; those of the seed are all smaller. */
  readonly nextId: () => number;
}

export function activePlan(account: Account): Plan {
  const plan = account.plans.find(({ id }) => id === account.subscription.plan);
  if (!plan) throw new Error(`account ${account.name} has no active plan`);
  return plan;
}

/** Cents, so that sums of money stay what a person would write. */
export const usd = (amount: number): number => Math.round(amount * 100) / 100;
