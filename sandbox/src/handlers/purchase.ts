import { ok, type Answer, type Call } from '../call.ts';
import { fieldRefused, fieldRefusedAsText, NO_SUCH, Refusal } from '../errors.ts';
import { checkFields } from '../input.ts';
import { pay } from '../payments.ts';
import { priceOf, purchaseBody, type PurchaseBody } from '../pricing.ts';
import { activePlan, type PaymentMethod, type Plan } from '../state.ts';
import { TERM } from '../time.ts';

/** Buys a plan: from credits when they cover the price, else with a payment that the processor has yet to take. */
export function purchase(call: Call): Answer {
  const { account, now, world } = call;
  const body = checkFields(purchaseBody, call.body);
  const card = chosenCard(call, body);
  const price = priceOf(body, account.subscription.account_discount_percentage);
  if (account.subscription.free_credits < price) {
    if (!body.recaptcha) throw fieldRefused('recaptcha', 'A payment requires a recaptcha validation.', 'required');
    if (!card) throw new Refusal(400, { non_field_errors: ['There is no payment method to charge.'] });
  }
  const plan = replacePlan(call, body, price);
  const payment = pay(account, world, { price, card, at: now, isRenewal: false });
  if (!payment) return ok({ payment_required: false, plan: plan.id });
  return ok({
    payment_required: true,
    plan: plan.id,
    pending_payment: payment.id,
    processor_client_secret: `sandbox_intent_${payment.id}_secret`,
    processor_payment_intent: `sandbox_intent_${payment.id}`,
    processor_payment_method: `sandbox_method_${payment.payment_method}`,
  });
}

/** An id, as number or text, names a method; every other value means the one on the subscription. */
function chosenCard({ account }: Call, { payment_method: chosen }: PurchaseBody): PaymentMethod | undefined {
  const isId = /^\d+$/.test(String(chosen));
  const id = isId ? Number(chosen) : account.subscription.payment_method;
  const card = account.paymentMethods.find((candidate) => candidate.id === id);
  if (isId && !card) throw fieldRefusedAsText('payment_method', NO_SUCH);
  return card;
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
    if (owned.planId === old.id) owned.planId = plan.id;
  }
  account.subscription = {
    ...account.subscription,
    plan: plan.id,
    term: body.term,
    start_date: now,
    end_date: now + TERM,
    paused: false,
    reactivation_date: null,
    reactivation_period_left: null,
    updated_at: now,
  };
  return plan;
}
