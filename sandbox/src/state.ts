import type { Resource } from './resource.ts';
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
export interface OfPlan {
  planId: number;
}

/** What the processor has yet to take. */
export interface Charge {
  readonly amount: number;
  readonly creditsUsed: number;
  readonly dueAt: Instant;
}

export type PaymentMethod = Resource<'getPaymentMethod'>;

export type PendingPayment = Resource<'getPendingPayment'> & { readonly charge?: Charge };

/** Its resources may hold more than the upstream shows of them. */
export interface Account {
  readonly name: string;
  /** What every call of the account is refused with. */
  refusal: 'account_suspended' | '2fa_needed' | null;
  apiKeys: Resource<'getApiKey'>[];
  paymentMethods: PaymentMethod[];
  transactions: Resource<'getTransaction'>[];
  pendingPayments: PendingPayment[];
  plans: Plan[];
  subscription: Resource<'getSubscription'>;
  referralConfig: Resource<'getReferralConfig'>;
  referralCredits: Resource<'getReferralCredit'>[];
  earnOuts: Resource<'getEarnOut'>[];
  referralChannels: Resource<'listReferralChannels'>[];
  subusers: (Resource<'getSubuser'> & OfPlan & { readonly hasCustomList: boolean })[];
  ipAuthorizations: (Resource<'getIpAuthorization'> & OfPlan)[];
  notifications: Resource<'listNotifications'>[];
  idVerification: Resource<'startIdVerification'>;
  verificationFlows: Resource<'getVerificationFlow'>[];
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
