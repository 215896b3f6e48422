import type { Portico } from './client.ts';
import type { PendingPayment, Subscription } from './openapi.ts';
import { type Calling, credentialFor, type Sender, unlessAborted } from './send.ts';
import type { CallOptions } from './types.ts';
import { headersOf, PorticoProblem, problemWithout, wireOf } from './wire.ts';

interface Purchase {
  readonly key: string;
  /** How long an equal one has the same key, in milliseconds since 1970; 0 while nothing went wrong. */
  until: number;
  answer?: Promise<unknown> | undefined; // until it is there
}
type Buy = (input: object, options?: Calling) => Promise<unknown>;
/** Not every page has `randomUUID`, and React Native has no `crypto`. */
const newKey = () =>
  (globalThis as { crypto?: Partial<Crypto> }).crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
const sorted = (_: string, v: unknown) =>
  Object(v) === v ? Object.fromEntries(Object.entries(v as object).sort(([a], [b]) => (a < b ? -1 : 1))) : v; // oxlint-disable-line unicorn/no-array-sort

/**
 * `buy`, with an idempotency key for each purchase. An equal one, such as a double click, joins it while it is under way, and
 * has the same key for a minute if nobody knows how it ended. So it is charged once.
 */
export function createPurchases(sender: Sender, buy: Buy): Buy {
  const purchases = new Map<string, Purchase>();
  return async (input, options = {}) => {
    if (options.idempotencyKey) return buy(input, options);
    const { signal, caller = {} } = options;
    caller.is ??= (await unlessAborted(credentialFor(sender, headersOf(options)), signal))[1];
    const equal = JSON.stringify([caller.is, { ...input, recaptcha: undefined }], sorted);
    let one = purchases.get(equal);
    if (one?.answer) return unlessAborted(one.answer, signal);
    if (!one || one.until <= Date.now()) one = { key: newKey(), until: 0 };
    purchases.set(equal, one);
    try {
      one.answer = buy(input, { ...options, caller, idempotencyKey: one.key });
      const value = await one.answer;
      purchases.delete(equal);
      return value;
    } catch (error) {
      const { outcome, status } = error instanceof PorticoProblem ? error : { outcome: 'unknown', status: 0 };
      // Neither a refusal nor a 409 of this one says how an earlier one has ended: the upstream may still carry that out.
      if (!outcome && status !== 409 && !one.until) purchases.delete(equal);
      else if ((outcome && status !== 409) || !one.until) one.until = Date.now() + 60_000;
      throw error;
    } finally {
      one.answer = undefined;
    }
  };
}

/** Before the purchase: `data` of a billing overview, or the subscription alone. */
export interface Before {
  readonly subscription: Pick<Subscription, 'plan'> & { readonly id?: number };
  readonly pending_payments?: { readonly results: readonly Pick<PendingPayment, 'id'>[] } | null;
}

/** By what the gateway has of a key, where nothing is to be seen of the purchase. */
const UNSEEN = { done: 'bought', under_way: 'under_way', outcome_not_found: 'not_bought' } as const;

export interface Outcome {
  /**
   * `bought`: it was, or there is another plan. `begun`: a payment is pending, the plan is the old one. `under_way`: the
   * gateway still waits for the upstream's answer. `not_bought`: the gateway has no record of it. `not_seen`: nothing shows
   * it; within a minute of the purchase it may still come.
   */
  readonly state: (typeof UNSEEN)[keyof typeof UNSEEN] | 'begun' | 'not_seen';
  readonly subscription: Subscription;
  /** Of the purchase, if it needs one and the pending payments of before are known. */
  readonly payment: PendingPayment | undefined;
}

/**
 * Finds out what became of a purchase of unknown outcome. With its `idempotencyKey`, by asking the gateway; from the subscription
 * and the pending payments (first page) too, which cannot tell it from another one that was made meanwhile. Looks once.
 */
export async function outcomeOf(
  portico: Portico,
  before: Before,
  { idempotencyKey, ...options }: CallOptions = {},
): Promise<Outcome> {
  const asking = idempotencyKey ? portico.getOutcome(undefined, { ...options, idempotencyKey }) : undefined;
  const record = await asking?.catch((error: unknown) => {
    if (error instanceof PorticoProblem && error.status === 404) return { state: error.code };
    throw error;
  });
  const asked = { sections: ['subscription', 'pending_payments'] } as const;
  const { data } = await portico.getBillingOverview(asked, { ...options, fresh: true, strict: true });
  const { subscription, pending_payments } = data;
  const { id: of = subscription.id, plan } = before.subscription;
  if (of !== subscription.id) throw problemWithout('account_changed', wireOf(portico.routes.getSubscription));
  const known = before.pending_payments?.results.map(({ id }) => id);
  const payment = pending_payments?.results.find(({ id, is_renewal }) => !is_renewal && known?.includes(id) === false);
  const unseen = UNSEEN[record?.state as keyof typeof UNSEEN] ?? 'not_seen';
  return { state: subscription.plan !== plan ? 'bought' : payment ? 'begun' : unseen, subscription, payment };
}
