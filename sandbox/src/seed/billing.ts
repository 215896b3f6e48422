import { DECLINED_LAST4, embed } from '../transitions/billing.ts';
import type { PaymentMethod, PendingPayment, Transaction } from '../resources/billing.ts';
import { datedAt } from '../resources/dated.ts';
import { DAY, type Instant } from '../time.ts';

export function seedCard(id: number, last4: string, savedAt: Instant): PaymentMethod {
  return {
    id,
    type: 'SandboxCard',
    brand: last4 === '4444' ? 'mastercard' : 'visa',
    last4,
    name: 'A. Holder',
    expiration_year: 2034,
    expiration_month: 4,
    line: '1 Main Street',
    city: 'Springfield',
    state: last4 === DECLINED_LAST4 ? null : 'OR',
    postal_code: '97477',
    country: 'US',
    ...datedAt(savedAt),
  };
}

/** One every six days, the last one yesterday; every seventh is paid from credits, every eleventh refunded. */
export function seedTransactions(count: number, firstId: number, card: PaymentMethod, now: Instant): Transaction[] {
  return Array.from({ length: count }, (_, index) => {
    const madeAt = now - DAY - (count - 1 - index) * 6 * DAY - index * 1_234_567;
    const amount = 5 + (index % 6) * 4.25;
    const fromCredits = index % 7 === 6;
    const refunded = index % 11 === 10;
    return {
      id: firstId + index,
      status: 'completed',
      payment_method: embed(card),
      reason: index % 5 === 0 ? 'Purchase of a plan' : 'Renewal of a plan',
      amount: fromCredits ? 0 : amount,
      credits_used: fromCredits ? amount : 0,
      credits_gained: 0,
      refund_amount: refunded ? amount : 0,
      refund_date: refunded ? madeAt + DAY : null,
      created_at: madeAt,
      updated_at: refunded ? madeAt + DAY : madeAt,
    };
  });
}

interface PendingSeed {
  readonly id: number;
  readonly card: number;
  readonly plan: number;
  readonly startedAt: Instant;
}

/** One of each kind: completed, failed, and one that stays pending. */
export function seedPendingPayments(seed: PendingSeed, transaction: Transaction): PendingPayment[] {
  const pending = pendingPayment(seed);
  const completedAt = transaction.created_at;
  return [
    { ...pending, id: seed.id, status: 'completed', transaction: transaction.id, completed_at: completedAt },
    { ...pending, id: seed.id + 1, status: 'failed', failure_reason: 'card_declined', is_renewal: true },
    { ...pending, id: seed.id + 2 },
  ];
}

function pendingPayment({ id, card, plan, startedAt }: PendingSeed): PendingPayment {
  return {
    id,
    status: 'pending',
    failure_reason: null,
    payment_method: card,
    plan,
    transaction: null,
    is_renewal: false,
    term: 'monthly',
    completed_at: null,
    ...datedAt(startedAt),
  };
}
