import type { billing as rows } from '../../../src/proxy-account/billing.ts';
import { byId, noContent, ok, type Answer, type Call, type Handler } from '../call.ts';
import { refused } from '../errors.ts';
import { list } from '../list.ts';
import { activePlan } from '../state.ts';
import { purchase } from './purchase.ts';

/** The three cases of the document: a paid plan keeps its card, a saved card goes, no card is fine too. */
function deletePaymentMethod({ account, now }: Call): Answer {
  const { subscription } = account;
  if (subscription.payment_method === null) return noContent;
  if (activePlan(account).paid) {
    throw refused(
      'You have a paid plan. Cancel its automatic renewal instead, which removes the card as well.',
      'paid_plan_active',
    );
  }
  account.paymentMethods = account.paymentMethods.filter(({ id }) => id !== subscription.payment_method);
  subscription.payment_method = null;
  subscription.updated_at = now;
  return noContent;
}

export const billingHandlers: Record<keyof typeof rows, Handler> = {
  listPaymentMethods: (call) => list(call.account.paymentMethods, call),
  getPaymentMethod: ({ account, id }) => ok(byId(account.paymentMethods, id)),
  deletePaymentMethod,
  listTransactions: (call) => list(call.account.transactions, call),
  getTransaction: ({ account, id }) => ok(byId(account.transactions, id)),
  listPendingPayments: (call) => list(call.account.pendingPayments, call),
  getPendingPayment: ({ account, id }) => ok(byId(account.pendingPayments, id)),
  purchasePlan: purchase,
  getSubscription: ({ account }) => ok(account.subscription),
};
