import { checkFields } from '../body.ts';
import { ok, type Answer, type Call } from '../call.ts';
import { fieldRefused, fieldRefusedAsText, NO_SUCH, Refusal } from '../errors.ts';
import { recordTransaction } from '../transitions/billing.ts';
import { priceOf, purchaseBody, type PurchaseBody } from '../pricing.ts';
import type { PaymentMethod, PendingPayment } from '../resources/billing.ts';
import { datedAt } from '../resources/dated.ts';
import { activePlan, usd, type Plan } from '../state.ts';
import { SECOND, TERM } from '../time.ts';

/** How long the processor takes. */
const PROCESSING_TIME = 30 * SECOND;

/** Buys a plan: from credits when they cover the price, else with a payment that the processor has yet to take. */
export function purchase(call: Call): Answer {
  const { account } = call;
  const body = checkFields(purchaseBody, call.body);
  const card = chosenCard(call, body);
  const price = priceOf(body, account.subscription.account_discount_percentage);
  if (account.subscription.free_credits >= price) return payWithCredits(call, body, { price, card });
  if (!body.recaptcha) throw fieldRefused('recaptcha', 'A payment requires a recaptcha validation.', 'required');
  if (!card) throw new Refusal(400, { non_field_errors: ['There is no payment method to charge.'] });
  return payWithCard(call, body, { price, card });
}

/** An id, as number or text, names a method; every other value means the one on the subscription. */
function chosenCard({ account }: Call, { payment_method: chosen }: PurchaseBody): PaymentMethod | null {
  const isId = /^\d+$/.test(String(chosen));
  const id = isId ? Number(chosen) : account.subscription.payment_method;
  const card = account.paymentMethods.find((candidate) => candidate.id === id);
  if (isId && !card) throw fieldRefusedAsText('payment_method', NO_SUCH);
  return card ?? null;
}

interface Payment<C extends PaymentMethod | null> {
  readonly price: number;
  readonly card: C;
}

function payWithCredits(call: Call, body: PurchaseBody, { price, card }: Payment<PaymentMethod | null>): Answer {
  const { account, now, world } = call;
  account.subscription.free_credits = usd(account.subscription.free_credits - price);
  const plan = replacePlan(call, body, price);
  recordTransaction(account, world, { amount: 0, creditsUsed: price, card, at: now, reason: 'Purchase of a plan' });
  return ok({ payment_required: false, plan: plan.id });
}

function payWithCard(call: Call, body: PurchaseBody, { price, card }: Payment<PaymentMethod>): Answer {
  const { account, now } = call;
  const creditsUsed = account.subscription.free_credits;
  account.subscription.free_credits = 0;
  const plan = replacePlan(call, body, price);
  const payment = pendingPayment(call, plan, card);
  account.pendingPayments.push(payment);
  account.charges.push({ payment, amount: usd(price - creditsUsed), creditsUsed, dueAt: now + PROCESSING_TIME });
  return ok({
    payment_required: true,
    plan: plan.id,
    pending_payment: payment.id,
    processor_client_secret: `sandbox_intent_${payment.id}_secret`,
    processor_payment_intent: `sandbox_intent_${payment.id}`,
    processor_payment_method: `sandbox_method_${card.id}`,
  });
}

/** Makes the new plan the active one, moves what belonged to the old one to it, and starts a term. */
function replacePlan({ account, now, world }: Call, body: PurchaseBody, price: number): Plan {
  const old = activePlan(account);
  const plan: Plan = {
    id: world.nextId(),
    price,
    paid: true,
    refreshesAvailable: body.on_demand_refreshes_total,
    startedAt: now,
    endedAt: null,
  };
  old.endedAt = now;
  account.plans.push(plan);
  for (const owned of [...account.subusers, ...account.ipAuthorizations]) {
    if (owned.plan === old.id) owned.plan = plan.id;
  }
  Object.assign(account.subscription, {
    plan: plan.id,
    term: body.term,
    start_date: now,
    end_date: now + TERM,
    paused: false,
    reactivation_date: null,
    reactivation_period_left: null,
    updated_at: now,
  });
  return plan;
}

function pendingPayment({ account, now, world }: Call, plan: Plan, card: PaymentMethod): PendingPayment {
  return {
    id: world.nextId(),
    status: 'pending',
    failure_reason: null,
    payment_method: card.id,
    plan: plan.id,
    transaction: null,
    is_renewal: false,
    term: account.subscription.term,
    ...datedAt(now),
    completed_at: null,
  };
}
