import * as z from 'zod/mini';
import { counts, dated, flag, identifier, integer, number, resource, text, timestamp } from '../upstream/fields.ts';
import { pageOf } from '../upstream/page.ts';
import { anyText, paging } from '../upstream/parameters.ts';
import { chapter, RECORDS, SETTINGS } from './chapter.ts';

/** Fields of a card; payment methods of other types may lack them. */
const card = {
  brand: z.optional(text('card network name', 'visa')),
  last4: z.optional(text('last four digits of the card', '4242')),
  name: z.optional(z.nullable(text('name on the card', 'A. Holder'))),
  expiration_year: z.optional(integer('year', 2030)),
  expiration_month: z.optional(integer('month, from 1', 4)),
};

const embeddedPaymentMethod = resource('EmbeddedPaymentMethod', {
  id: identifier('identifier', 1071),
  ...card,
  ...dated,
});

const paymentMethod = resource('PaymentMethod', {
  id: identifier('identifier', 1071),
  type: text('kind of payment method', 'ProcessorCard'),
  ...card,
  ...dated,
  line: z.optional(text('billing address line', '1 Main Street')),
  city: z.optional(text('city', 'Springfield')),
  state: z.optional(z.nullable(text('state', 'OR'))),
  postal_code: z.optional(text('postal code', '97477')),
  country: z.optional(text('two-letter country code', 'US')),
});

const transaction = resource('Transaction', {
  id: identifier('identifier', 1201),
  status: text('state; `completed` is the one documented', 'completed'),
  payment_method: z.nullable(embeddedPaymentMethod),
  reason: text('description of the charge for people', 'Purchase of plan'),
  amount: number('USD charged', 25.5),
  credits_used: number('USD of credits spent', 0),
  credits_gained: number('USD of credits gained', 0),
  refund_amount: number('USD refunded', 0),
  refund_date: z.nullable(timestamp('when it was refunded')),
  ...dated,
});

const pendingPayment = resource(
  'PendingPayment',
  {
    id: identifier('identifier', 1301),
    status: text('state; `pending` is the one documented', 'pending'),
    failure_reason: z.nullable(text('why it failed', 'card_declined')),
    payment_method: z.nullable(identifier('id of the payment method', 1071)),
    plan: identifier('id of the plan', 3),
    transaction: z.nullable(identifier('id of the transaction', 1201)),
    is_renewal: flag('whether it renews a term', false),
    term: text('`monthly` is the one documented', 'monthly'),
    created_at: timestamp('when it was begun'),
    updated_at: timestamp('when it last changed'),
    completed_at: z.nullable(timestamp('when it was completed; null while pending')),
  },
  'A payment that has been begun but not completed.',
);

const subscription = resource('Subscription', {
  id: identifier('stable for the account', 5),
  plan: identifier('id of the active plan; changes on re-customization', 3),
  payment_method: z.nullable(identifier('id of the payment method; null without a card', 1071)),
  free_credits: number('account credits in USD', 10),
  term: text('decides the amount of the next renewal', 'monthly'),
  start_date: timestamp('start of the current renewal term'),
  end_date: timestamp('end of the current renewal term', '2026-07-09T11:50:08.101337-07:00'),
  renewals_paid: integer('number of paid 30-day renewals', 1),
  renewals_enabled: flag('renewed by itself at the end of the term', true),
  failed_payment_times: integer('number of failed automated renewal payments', 0),
  account_discount_percentage: integer('discount in percent', 0),
  promotion_available_first_time_renewal_25_off: flag('whether the 25% first-renewal discount is available', false),
  customizable: flag('false where support staff customize the plan', true),
  paused: flag('whether it is paused', false),
  reactivation_date: z.nullable(timestamp('when a paused subscription resumes')),
  reactivation_period_left: z.nullable(text('period left when it was paused', '7 00:00:00')),
  promo_type: z.nullable(text('promotion the account receives', 'first_time_value_off')),
  promo_value: z.nullable(integer('value of that promotion', 5)),
  retention_discount_resi_20_available: flag('whether the one-off 20% retention offer can be accepted now', false),
  throttled: flag('high bandwidth use with few proxies', false),
  ...dated,
});

const purchase = resource('PurchasePlanBody', {
  proxy_type: z.optional(text('proxy type', 'shared')),
  proxy_subtype: z.optional(text('proxy subtype', 'default')),
  proxy_countries: z.optional(counts('country code to number of proxies', { US: 5 })),
  bandwidth_limit: z.optional(integer('bandwidth limit', 250)),
  on_demand_refreshes_total: z.optional(integer('list refreshes that come with the plan', 1)),
  automatic_refresh_frequency: z.optional(integer('automatic refresh frequency', 0)),
  proxy_replacements_total: z.optional(integer('replacements that come with the plan', 2)),
  subusers_total: z.optional(integer('sub-users that come with the plan', 3)),
  is_unlimited_ip_authorizations: z.optional(flag('no limit on IP authorizations', false)),
  is_high_concurrency: z.optional(flag('high concurrency', false)),
  is_2x_concurrency: z.optional(flag('twice the concurrency', false)),
  is_high_priority_network: z.optional(flag('high-priority network', false)),
  high_quality_ips_only: z.optional(flag('high-quality addresses only', false)),
  term: z.optional(text('`monthly` or `yearly`', 'monthly')),
  behavior: z.optional(text('one of two options that the document does not name', 'default')),
  payment_method: z.optional(
    z.nullable(z.union([text('one of three options', 'default'), identifier('id of a payment method', 1071)])),
  ),
  recaptcha: z.optional(z.nullable(text('recaptcha token, needed when a payment is', '<RECAPTCHA>'))),
});

const purchaseAnswer = resource('PurchaseAnswer', {
  payment_required: flag('whether further payment steps are needed', true),
  plan: identifier('id of the new plan', 4),
  pending_payment: z.optional(z.nullable(identifier('id of the pending payment', 1301))),
  processor_client_secret: z.optional(z.nullable(text('client secret of the payment processor', '<CLIENT_SECRET>'))),
  processor_payment_intent: z.optional(z.nullable(text("id of the processor's payment intent", '<INTENT>'))),
  processor_payment_method: z.optional(z.nullable(text("id of the processor's payment method", '<METHOD>'))),
});

const PAID_PLAN_ACTIVE = {
  status: 400,
  title: 'A paid plan is active',
  description:
    'The card cannot be removed while a paid plan is active. Cancel auto-renewal instead, which removes the card.',
};

const filters = { ...paging, ordering: anyText('allowed fields: not documented') };

const paymentMethods = { group: 'paymentMethods', cache: SETTINGS } as const;
const transactions = { group: 'transactions', cache: RECORDS } as const;

/** Payment methods, transactions, pending payments, subscription and purchase (endpoints 3 to 11). */
export const billing = chapter('Billing', 'Subscription, plan, payment methods, transactions.', {
  listPaymentMethods: {
    at: 'GET /api/v2/payment/method/',
    query: filters,
    ...pageOf(paymentMethod),
    ...paymentMethods,
  },
  getPaymentMethod: {
    at: 'GET /api/v2/payment/method/{id}/',
    answer: paymentMethod,
    ...paymentMethods,
    description: 'The id of the active payment method is in the subscription.',
  },
  deletePaymentMethod: {
    at: 'DELETE /api/v2/payment/method/',
    answer: null,
    invalidates: ['paymentMethods', 'subscription'],
    refusals: { paid_plan_active: PAID_PLAN_ACTIVE },
    summary: 'Remove the card saved on the subscription',
    description: 'Refused with `paid_plan_active` while a paid plan is active. 204 also when no card is saved.',
  },
  listTransactions: { at: 'GET /api/v2/payment/transaction/', query: filters, ...pageOf(transaction), ...transactions },
  getTransaction: { at: 'GET /api/v2/payment/transaction/{id}/', answer: transaction, ...transactions },
  listPendingPayments: {
    at: 'GET /api/v2/payment/pending/',
    query: filters,
    ...pageOf(pendingPayment),
    group: 'pendingPayments',
    cache: RECORDS,
  },
  getPendingPayment: {
    at: 'GET /api/v2/payment/pending/{id}/',
    answer: pendingPayment,
    group: 'pendingPayments',
    polled: true,
    description: 'This is what one polls after a purchase.',
  },
  purchasePlan: {
    at: 'POST /api/v2/subscription/checkout/purchase/',
    body: { schema: purchase },
    answer: purchaseAnswer,
    invalidates: ['everything'],
    exclusive: true,
    notCompared: new Set(['recaptcha']),
    secrets: ['processor_client_secret', 'recaptcha'],
    summary: 'Buy a plan',
    description: 'The new plan replaces the existing one and moves `subscription.start_date`.',
  },
  getSubscription: { at: 'GET /api/v2/subscription/', answer: subscription, group: 'subscription', cache: SETTINGS },
});
