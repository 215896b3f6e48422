import type { Answer, Outcome } from 'portico-client';
import { usePayment } from './payment.ts';
import { summaryOf } from './problem.ts';
import type { Purchase } from './purchase.ts';
import { spoken } from './words.ts';

interface Props {
  readonly purchase: Purchase;
  readonly clicks: number;
  readonly onAgain: () => void;
  /** The payment is through, or refused. */
  readonly onPaid: () => void;
}

export function PurchaseStatus({ purchase, clicks, onAgain, onPaid }: Props) {
  const payment = usePayment(paymentOf(purchase), onPaid);
  const isOver = purchase.is === 'bought' || purchase.is === 'found';
  return (
    <div className="purchase-status">
      <p role="status">
        {textOf(purchase)}
        {isOver && clicks > 1 && ` You clicked ${clicks} times and bought it once.`}
      </p>
      <p role="status">{payment && paidText(payment)}</p>
      {isOver && (
        <button type="button" onClick={onAgain}>
          Buy another one
        </button>
      )}
    </div>
  );
}

function paymentOf(purchase: Purchase): number | undefined {
  if (purchase.is === 'bought') return purchase.answer.pending_payment ?? undefined;
  return purchase.is === 'found' ? purchase.outcome?.payment?.id : undefined;
}

function paidText({ id, status, failure_reason: reason }: Answer<'getPendingPayment'>): string {
  if (status === 'pending') return `Payment ${id} is under way…`;
  return status === 'completed' ? `Payment ${id} is through.` : `Payment ${id}: ${spoken(status)}. ${spoken(reason)}`;
}

/** What the account shows after a purchase that nobody answered. */
const FOUND: Readonly<Record<Outcome['state'], (outcome: Outcome) => string>> = {
  bought: ({ subscription: { plan } }) => `No answer came, but the account shows it: plan ${plan} is bought.`,
  begun: ({ payment }) => `No answer came, but the account shows it: payment ${payment?.id} is under way.`,
  under_way: () => 'No answer came, and it is still under way. Look again in a minute.',
  not_bought: () => 'It did not arrive, and nothing was bought. You can buy again.',
  not_seen: () => 'No answer came, and the account shows no new plan and no payment. You can buy again.',
};

function textOf(purchase: Purchase): string {
  switch (purchase.is) {
    case 'under way':
      return 'Buying…';
    case 'bought':
      return purchase.answer.payment_required
        ? `Plan ${purchase.answer.plan} is bought, with a payment.`
        : `Plan ${purchase.answer.plan} is bought, from your credit.`;
    case 'refused':
      return `Not bought. ${summaryOf(purchase.error)}`;
    case 'unknown':
      return 'No answer came. Nobody knows yet whether you have bought it. Please wait: the page is finding out.';
    case 'found':
      return purchase.outcome
        ? FOUND[purchase.outcome.state](purchase.outcome)
        : 'No answer came, and the account cannot be read. Look at your transactions before you buy again.';
    case 'none':
    default:
      return '';
  }
}
