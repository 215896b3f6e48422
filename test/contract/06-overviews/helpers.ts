import { exampleBody } from '../../support/examples.ts';
import { answer } from '../../support/upstream.ts';
import type { OperationId } from '../../support/account-api.ts';

/** As the contract lists them. Not made from the table: a wrong one would be right then. */
export const ACCOUNT = '/bff/v1/account-overview';
export const BILLING = '/bff/v1/billing-overview';
export const REFERRAL = '/bff/v1/referral-overview';
export const LINES = { Accept: 'application/x-ndjson' };

/** The first is the required one. */
export const SECTIONS: Readonly<Record<string, Readonly<Record<string, OperationId>>>> = {
  [ACCOUNT]: {
    subscription: 'getSubscription',
    payment_method: 'listPaymentMethods',
    notifications: 'listNotifications',
    referral_config: 'getReferralConfig',
  },
  [BILLING]: {
    subscription: 'getSubscription',
    payment_method: 'listPaymentMethods',
    transactions: 'listTransactions',
    pending_payments: 'listPendingPayments',
  },
  [REFERRAL]: {
    referral_config: 'getReferralConfig',
    credits: 'listReferralCredits',
    earn_outs: 'listEarnOuts',
    channels: 'listReferralChannels',
  },
};

/** What the upstream says of an account that has been written so often, and one; of the list of cards the card. */
export const textOf = (id: OperationId, version = 1): string =>
  id === 'listPaymentMethods'
    ? exampleBody('getPaymentMethod')
    : exampleBody(id).replace('{', `{"x_version":${version},`);

export const dataOf = (path: string): string =>
  `{${Object.entries(SECTIONS[path]!)
    .map(([name, id]) => `"${name}":${textOf(id)}`)
    .join(',')}}`;

export const namesIn = (value: unknown): readonly string[] => Object.keys(value as object);

/** A subscription that names this card: JSON, as it is sent. */
export const withCard = (card: string) =>
  answer(
    200,
    exampleBody('getSubscription').replace('"payment_method":1071', () => `"payment_method":${card}`),
  );

export const cardText = (id: string) => exampleBody('getPaymentMethod').replace('"id":1071', () => `"id":${id}`);

export const listOf = (...items: string[]) =>
  answer(200, `{"count":${items.length},"next":null,"previous":null,"results":[${items.join(',')}]}`);
