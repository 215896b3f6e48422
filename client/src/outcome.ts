import type { Portico } from './client.ts';
import type { PendingPayment, Subscription } from './openapi.ts';
import type { CallOptions } from './types.ts';

/** Before the purchase: `data` of a billing overview, or the subscription alone. */
export interface Before {
  readonly subscription: Pick<Subscription, 'plan'>;
  readonly pending_payments?: { readonly results: readonly Pick<PendingPayment, 'id'>[] } | null;
}

export interface Outcome {
  /**
   * `bought`: there is another plan. `begun`: a payment is pending, the plan is the old one. `not_seen`: neither; within a
   * minute of the purchase it may still come.
   */
  readonly state: 'bought' | 'begun' | 'not_seen';
  readonly subscription: Subscription;
  /** Of the purchase, if it needs one. */
  readonly payment: PendingPayment | undefined;
}

/**
 * Finds out what became of a purchase of unknown outcome, from the subscription and the pending payments (the first page).
 * Looks once. It cannot tell this purchase from another one that was made meanwhile.
 */
export async function outcomeOf(portico: Portico, before: Before, options?: CallOptions): Promise<Outcome> {
  const asked = { sections: ['subscription', 'pending_payments'] } as const;
  const { data } = await portico.getBillingOverview(asked, { ...options, fresh: true, strict: true });
  const { subscription, pending_payments } = data;
  const isBought = subscription.plan !== before.subscription.plan;
  const known = before.pending_payments?.results.map(({ id }) => id);
  const payment = pending_payments?.results.find(
    ({ id, plan, is_renewal }) => !is_renewal && (known ? !known.includes(id) : isBought && plan === subscription.plan),
  );
  return { state: isBought ? 'bought' : payment ? 'begun' : 'not_seen', subscription, payment };
}
