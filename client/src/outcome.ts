import type { Portico } from './client.ts';
import type { PendingPayment, Subscription } from './openapi.ts';
import { PorticoProblem } from './problem.ts';
import type { CallOptions } from './types.ts';

/** Before the purchase: `data` of a billing overview, or the subscription alone. */
export interface Before {
  readonly subscription: Pick<Subscription, 'plan'>;
  readonly pending_payments?: { readonly results: readonly Pick<PendingPayment, 'id'>[] } | null;
}

export interface Outcome {
  /**
   * `bought`: it was, or there is another plan. `begun`: a payment is pending, the plan is the old one. `under_way`: the
   * gateway still waits for the upstream's answer. `not_bought`: the gateway has no record of it. `not_seen`: nothing shows
   * it; within a minute of the purchase it may still come.
   */
  readonly state: 'bought' | 'begun' | 'under_way' | 'not_bought' | 'not_seen';
  readonly subscription: Subscription;
  /** Of the purchase, if it needs one. */
  readonly payment: PendingPayment | undefined;
}

/** What the gateway's record of a key comes to where nothing is to be seen of the purchase. */
const UNSEEN = {
  done: 'bought',
  under_way: 'under_way',
  unknown: 'not_seen',
  outcome_not_found: 'not_bought',
} as const;

/**
 * Finds out what became of a purchase of unknown outcome. With its `idempotencyKey`, by asking the gateway; from the subscription
 * and the pending payments (the first page) too, which cannot tell this purchase from another one that was made meanwhile.
 * Looks once.
 */
export async function outcomeOf(
  portico: Portico,
  before: Before,
  { idempotencyKey, ...options }: CallOptions = {},
): Promise<Outcome> {
  const record = idempotencyKey ? await recordOf(portico, { ...options, idempotencyKey }) : 'unknown';
  const asked = { sections: ['subscription', 'pending_payments'] } as const;
  const { data } = await portico.getBillingOverview(asked, { ...options, fresh: true, strict: true });
  const { subscription, pending_payments } = data;
  const isBought = subscription.plan !== before.subscription.plan;
  const known = before.pending_payments?.results.map(({ id }) => id);
  const payment = pending_payments?.results.find(
    ({ id, plan, is_renewal }) => !is_renewal && (known ? !known.includes(id) : isBought && plan === subscription.plan),
  );
  return { state: isBought ? 'bought' : payment ? 'begun' : UNSEEN[record], subscription, payment };
}

type Asking = (input: undefined, options: CallOptions) => Promise<{ readonly state: keyof typeof UNSEEN }>;

/** An older gateway knows of none. */
async function recordOf(portico: Portico, options: CallOptions): Promise<keyof typeof UNSEEN> {
  const { getOutcome } = portico as unknown as { readonly getOutcome?: Asking };
  try {
    return (await getOutcome?.(undefined, options))?.state ?? 'unknown';
  } catch (error) {
    if (!(error instanceof PorticoProblem) || error.status !== 404) throw error;
    return error.code === 'outcome_not_found' ? 'outcome_not_found' : 'unknown';
  }
}
