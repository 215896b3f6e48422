import { DECLINED_LAST4 } from '../payments.ts';
import { example } from '../resource.ts';
import type { Account, PaymentMethod, PendingPayment } from '../state.ts';
import { DAY, type Instant } from '../time.ts';
import type { Seed } from './blank.ts';

export const seedCard = (id: number, last4: string, savedAt: Instant): PaymentMethod =>
  example('getPaymentMethod', savedAt, {
    id,
    type: 'SandboxCard',
    brand: last4 === '4444' ? 'mastercard' : 'visa',
    last4,
    name: 'A. Holder',
    expiration_year: 2034,
    state: last4 === DECLINED_LAST4 ? null : 'OR',
  });

/** One every six days, the last one yesterday; every eleventh was refunded. */
export const seedTransactions = (count: number, card: PaymentMethod, { base, now }: Seed): Account['transactions'] =>
  Array.from({ length: count }, (_, index) => {
    const madeAt = now - DAY - (count - 1 - index) * 6 * DAY;
    const amount = 5 + (index % 6) * 4.25;
    const refund = { refund_amount: amount, refund_date: madeAt + DAY, updated_at: madeAt + DAY };
    return example('getTransaction', madeAt, {
      id: base + 201 + index,
      payment_method: card,
      reason: index % 5 === 0 ? 'Purchase of a plan' : 'Renewal of a plan',
      amount,
      ...(index % 11 === 10 && refund),
    });
  });

/** One of each kind: completed, failed, and one that stays pending. */
export function seedPendingPayments({ plans, transactions }: Account, { base, now }: Seed): PendingPayment[] {
  const begun = now - DAY;
  const pending = example('getPendingPayment', begun, { payment_method: base + 71, plan: plans.at(-1)?.id ?? 0 });
  const transaction = transactions.at(-1)?.id ?? null;
  return [
    { ...pending, id: base + 301, status: 'completed', transaction, completed_at: begun },
    { ...pending, id: base + 302, status: 'failed', failure_reason: 'card_declined', is_renewal: true },
    { ...pending, id: base + 303 },
  ];
}
