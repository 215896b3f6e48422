import type { EmbeddedPaymentMethod, PaymentMethod, PendingPayment, Transaction } from '../resources/billing.ts';
import { datedAt } from '../resources/dated.ts';
import { activePlan, usd, type Account, type Charge, type Plan, type World } from '../state.ts';
import { parseDuration, TERM, type Instant } from '../time.ts';

/** Last digits of a card whose payments all fail. */
export const DECLINED_LAST4 = '0002';

/** Resumes a paused subscription at its reactivation date, with the period that was left. */
export function resume({ subscription }: Account, now: Instant): void {
  const { paused, reactivation_date: resumedAt, reactivation_period_left: left } = subscription;
  if (!paused || resumedAt === null || now < resumedAt) return;
  const endsAt = resumedAt + (left === null ? TERM : parseDuration(left));
  Object.assign(subscription, {
    paused: false,
    reactivation_date: null,
    reactivation_period_left: null,
    start_date: endsAt - TERM,
    end_date: endsAt,
    updated_at: resumedAt,
  });
}

/** Completes the charges that are due, or declines them. */
export function settleCharges(account: Account, world: World, now: Instant): void {
  const due = account.charges.filter(({ dueAt }) => dueAt <= now);
  account.charges = account.charges.filter(({ dueAt }) => dueAt > now);
  for (const charge of due) settleCharge(account, world, charge);
}

function settleCharge(account: Account, world: World, charge: Charge): void {
  const { payment, dueAt } = charge;
  const card = account.paymentMethods.find(({ id }) => id === payment.payment_method);
  payment.updated_at = dueAt;
  if (!card || card.last4 === DECLINED_LAST4) {
    Object.assign(payment, { status: 'failed', failure_reason: card ? 'card_declined' : 'payment_method_removed' });
    const plan = account.plans.find(({ id }) => id === payment.plan);
    if (plan) plan.paid = false;
    return;
  }
  const transaction = recordTransaction(account, world, { ...charge, card, at: dueAt, reason: 'Purchase of a plan' });
  Object.assign(payment, { status: 'completed', transaction: transaction.id, completed_at: dueAt });
}

interface Sale {
  readonly amount: number;
  readonly creditsUsed: number;
  readonly card: PaymentMethod | null;
  readonly at: Instant;
  readonly reason: string;
}

export function recordTransaction(account: Account, world: World, sale: Sale): Transaction {
  const transaction: Transaction = {
    id: world.nextId(),
    status: 'completed',
    payment_method: sale.card && embed(sale.card),
    reason: sale.reason,
    amount: sale.amount,
    credits_used: sale.creditsUsed,
    credits_gained: 0,
    refund_amount: 0,
    refund_date: null,
    ...datedAt(sale.at),
  };
  account.transactions.push(transaction);
  return transaction;
}

export function embed(card: PaymentMethod): EmbeddedPaymentMethod {
  const { id, brand, last4, name, expiration_year, expiration_month, created_at, updated_at } = card;
  return { id, brand, last4, name, expiration_year, expiration_month, created_at, updated_at };
}

/** Renews term after term until one ends after `now`, or is not paid. */
export function renew(account: Account, world: World, now: Instant): void {
  const { subscription } = account;
  while (!subscription.paused && subscription.end_date <= now) {
    if (!renewOnce(account, world, activePlan(account))) return;
    subscription.start_date = subscription.end_date;
    subscription.end_date += TERM;
    subscription.updated_at = subscription.start_date;
  }
}

function renewOnce(account: Account, world: World, plan: Plan): boolean {
  if (plan.price === 0) return true;
  if (!plan.paid) return false;
  if (account.subscription.renewals_enabled && payRenewal(account, world, plan)) return true;
  plan.paid = false;
  return false;
}

/** Credits first, the rest from the card; a card that is missing or declines counts as a failed payment. */
function payRenewal(account: Account, world: World, plan: Plan): boolean {
  const { subscription } = account;
  const creditsUsed = Math.min(subscription.free_credits, plan.price);
  const amount = usd(plan.price - creditsUsed);
  const card = account.paymentMethods.find(({ id }) => id === subscription.payment_method) ?? null;
  if (amount > 0 && (!card || card.last4 === DECLINED_LAST4)) {
    subscription.failed_payment_times += 1;
    return false;
  }
  const at = subscription.end_date;
  const sale = { amount, creditsUsed, card, at, reason: 'Renewal of a plan' };
  const transaction = recordTransaction(account, world, sale);
  if (card && amount > 0) account.pendingPayments.push(renewalPayment(account, world, transaction));
  subscription.free_credits = usd(subscription.free_credits - creditsUsed);
  subscription.renewals_paid += 1;
  return true;
}

function renewalPayment({ subscription }: Account, world: World, transaction: Transaction): PendingPayment {
  return {
    id: world.nextId(),
    status: 'completed',
    failure_reason: null,
    payment_method: transaction.payment_method?.id ?? 0,
    plan: subscription.plan,
    transaction: transaction.id,
    is_renewal: true,
    term: subscription.term,
    ...datedAt(transaction.created_at),
    completed_at: transaction.created_at,
  };
}
