import { example } from './resource.ts';
import { type Account, type Charge, type PaymentMethod, type PendingPayment, usd, type World } from './state.ts';
import { SECOND, type Instant } from './time.ts';

/** Last digits of a card whose payments all fail. */
export const DECLINED_LAST4 = '0002';

/** How long the processor takes for a purchase. */
const PROCESSING_TIME = 30 * SECOND;

interface Sale {
  readonly price: number;
  readonly card: PaymentMethod | undefined;
  readonly at: Instant;
  readonly isRenewal: boolean;
}

/** Pays for the active plan: from credits, and what they do not cover with a payment that is pending until it is due. */
export function pay(account: Account, world: World, { at, card, isRenewal, price }: Sale): PendingPayment | null {
  const { subscription } = account;
  const creditsUsed = Math.min(subscription.free_credits, price);
  const amount = usd(price - creditsUsed);
  const payment = example('getPendingPayment', at, {
    id: world.nextId(),
    payment_method: card?.id ?? null,
    plan: subscription.plan,
    is_renewal: isRenewal,
    term: subscription.term,
  });
  const charge = { amount, creditsUsed, dueAt: isRenewal ? at : at + PROCESSING_TIME };
  subscription.free_credits = usd(subscription.free_credits - creditsUsed);
  if (amount === 0) {
    recordTransaction(account, world, payment, charge);
    return null;
  }
  const pending = { ...payment, charge };
  account.pendingPayments.push(pending);
  return pending;
}

/** Completes the payments that are due, or declines them: then their plan is not paid. */
export function settlePayments(account: Account, world: World, now: Instant): void {
  for (const payment of account.pendingPayments) {
    const { charge, status } = payment;
    if (status === 'pending' && charge && charge.dueAt <= now) settle(account, world, payment, charge);
  }
}

function settle(account: Account, world: World, payment: PendingPayment, charge: Charge): void {
  const card = account.paymentMethods.find(({ id }) => id === payment.payment_method);
  payment.updated_at = charge.dueAt;
  if (card && card.last4 !== DECLINED_LAST4) {
    payment.status = 'completed';
    payment.completed_at = charge.dueAt;
    payment.transaction = recordTransaction(account, world, payment, charge);
    return;
  }
  payment.status = 'failed';
  payment.failure_reason = card ? 'card_declined' : 'payment_method_removed';
  const plan = account.plans.find(({ id }) => id === payment.plan);
  if (plan) plan.paid = false;
}

function recordTransaction(account: Account, world: World, payment: PendingPayment, charge: Charge): number {
  const id = world.nextId();
  const transaction = example('getTransaction', charge.dueAt, {
    id,
    payment_method: account.paymentMethods.find((card) => card.id === payment.payment_method) ?? null,
    reason: payment.is_renewal ? 'Renewal of a plan' : 'Purchase of a plan',
    amount: charge.amount,
    credits_used: charge.creditsUsed,
  });
  account.transactions.push(transaction);
  return id;
}
