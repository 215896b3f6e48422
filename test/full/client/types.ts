import {
  createClient,
  each,
  type OverviewInput,
  type PaymentMethod,
  PorticoProblem,
  readBatch,
  streamOverview,
  type Subscription,
  type Transaction,
} from '../../../client/src/index.ts';
import type { Same } from '../../support/same.ts';

// What the client's types say. Compiled by `npm run check`, never run.

const portico = createClient({ token: () => Promise.resolve('key') });
const same = <A, B>(isSame: Same<A, B>): void => void isSame;

export async function calls(): Promise<void> {
  const subscription = await portico.getSubscription();
  same<typeof subscription, Subscription>(true);
  await portico.getTransaction({ id: '9223372036854775807' }, { signal: AbortSignal.timeout(1000) });
  // @ts-expect-error an id is needed
  await portico.getTransaction();
  await portico.listTransactions({ page: 2, page_size: 10 }, { query: { status: 'completed' } });
  // @ts-expect-error there is no such member
  await portico.listTransactions({ pages: 2 });
  // @ts-expect-error nor such a mode
  await portico.updateReferralConfig({ mode: 'cash' });
  const nothing = await portico.deletePaymentMethod();
  same<typeof nothing, undefined>(true);
  await portico.purchasePlan({ proxy_type: 'shared', something: 'new' }, { idempotencyKey: 'order-1' });
  // @ts-expect-error an equal one would be sent once more
  await portico.response('purchasePlan', {});
}

export async function overviews(sections: ('subscription' | 'notifications')[]): Promise<void> {
  const { data, meta } = await portico.getAccountOverview();
  same<typeof data.subscription, Subscription>(true);
  same<typeof data.payment_method, PaymentMethod | null>(true);
  // @ts-expect-error it may have failed
  data.notifications.count.toFixed();
  meta.sections.referral_config.state.toUpperCase();

  const some = await portico.getAccountOverview({
    sections: ['subscription', 'notifications'],
    fields: { subscription: ['id', 'plan'], notifications: ['type'] },
  });
  same<typeof some.data.subscription, { id: number; plan: number }>(true);
  // @ts-expect-error a field that was not asked for
  some.data.notifications?.results.map(({ id }) => String(id));
  // @ts-expect-error a section that was not asked for
  void some.data.payment_method;
  // @ts-expect-error the same in meta
  void some.meta.sections.payment_method;
  // @ts-expect-error no section of this overview
  await portico.getAccountOverview({ sections: ['transactions'] });
  // @ts-expect-error no field of this section
  await portico.getAccountOverview({ fields: { subscription: ['amount'] } });

  const open = await portico.getAccountOverview({ sections });
  // @ts-expect-error nobody knows which of them were asked for
  void open.data.subscription.plan;
  void open.data.subscription?.plan;
  const anyOf: OverviewInput<'getAccountOverview'> = { sections, fields: { subscription: ['plan'] } };
  const any = await portico.getAccountOverview(anyOf);
  // @ts-expect-error nor which fields of it
  any.data.subscription?.end_date satisfies string;
}

export async function others(): Promise<void> {
  for await (const line of streamOverview(portico, 'getAccountOverview', {
    sections: ['subscription', 'payment_method'],
  })) {
    if ('error' in line) line.error.detail.trim();
    else if (line.section === 'subscription') same<typeof line.data, Subscription>(true);
    else line.section satisfies 'payment_method';
  }
  for await (const one of each(portico, 'listTransactions', { page_size: 100 })) same<typeof one, Transaction>(true);
  // @ts-expect-error no list
  each(portico, 'getSubscription');
  const { plan } = await readBatch(portico, { plan: ['getSubscription'], cards: ['listPaymentMethods', { page: 1 }] });
  if (plan instanceof PorticoProblem) plan.code satisfies string;
  else same<typeof plan, Subscription>(true);
  // @ts-expect-error a write
  await readBatch(portico, { a: ['createApiKey'] });
}
