import {
  type Code,
  createClient,
  each,
  keepCopies,
  outcomeOf,
  type OverviewInput,
  type PaymentMethod,
  PorticoProblem,
  readBatch,
  type Retry,
  streamOverview,
  type Subscription,
  touches,
  type Transaction,
  watchOverview,
} from '../../client/src/index.ts';
import { queriesOf } from '../../client/src/query.ts';
import type { Same } from '../support/same.ts';

// What the client's types say. Compiled by `npm run check`, never run.

const portico = createClient({ token: () => Promise.resolve('key') });
const same = <A, B>(isSame: Same<A, B>): void => void isSame;

export async function calls(): Promise<void> {
  const subscription = await portico.getSubscription();
  same<typeof subscription, Subscription>(true);
  await portico.getTransaction({ id: 1201 }, { signal: AbortSignal.timeout(1000) });
  await portico.getTransaction({ id: '9223372036854775807' });
  // @ts-expect-error an id is needed
  await portico.getTransaction();
  // @ts-expect-error there is no such member
  await portico.listTransactions({ pages: 2 });
  await portico.listTransactions({ page: 2, page_size: 10 }, { query: { status: 'completed' } });
  await portico.updateReferralConfig({ mode: 'credits' });
  // @ts-expect-error nor such a mode
  await portico.updateReferralConfig({ mode: 'cash' });
  await portico.deleteSession({ everywhere: true });
  const nothing = await portico.deletePaymentMethod();
  same<typeof nothing, undefined>(true);
  await portico.refreshProxyList({ plan_id: 3 });
  await portico.startIdVerification();
  await portico.purchasePlan({ proxy_type: 'shared', something: 'new' }, { idempotencyKey: 'order-1' });
  (await portico.response('getTransaction', { id: 5 })).headers.get('ETag');
  // @ts-expect-error an id is needed
  await portico.response('getTransaction');
  // @ts-expect-error an equal one would be sent once more
  await portico.response('purchasePlan', {});
  const session = await portico.getSession();
  if (session.authenticated) session.account.toUpperCase();
}

export async function overviews(sections: ('subscription' | 'notifications')[], maybe: boolean): Promise<void> {
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
  some.data.notifications?.results.map(({ type }) => type);
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

  await portico.listTransactions({ page: maybe ? 2 : undefined });
  const perhaps = await portico.getAccountOverview({ sections: maybe ? ['subscription'] : undefined });
  // @ts-expect-error nor whether any were
  void perhaps.data.notifications.count;
  void perhaps.data.notifications?.count;

  const open = await portico.getAccountOverview({ sections });
  // @ts-expect-error nobody knows which of them were asked for
  void open.data.subscription.plan;
  void open.data.subscription?.plan;

  for (const one of sections) {
    const { data: either } = await portico.getAccountOverview({ sections: [one] });
    // @ts-expect-error it may have been the other one
    void either.subscription.plan;
  }
  const anyOf: OverviewInput<'getAccountOverview'> = { sections, fields: { subscription: ['plan'] } };
  const any = await portico.getAccountOverview(anyOf);
  // @ts-expect-error nobody knows whether it was asked for
  void any.data.subscription.plan;
  any.data.subscription?.end_date satisfies string | undefined;
  // @ts-expect-error nor which fields of it
  any.data.subscription?.end_date satisfies string;
  const fields: ('plan' | 'end_date')[] = ['plan'];
  const trimmed = await portico.getAccountOverview({ fields: { subscription: fields } });
  // @ts-expect-error nor here
  trimmed.data.subscription.end_date satisfies string;
  trimmed.data.subscription satisfies { plan?: number; end_date?: string };
  trimmed.data.referral_config?.mode satisfies string | undefined;

  const channels = await portico.getReferralOverview({ fields: { channels: ['code'] } });
  same<typeof channels.data.channels, { code: string }[] | null>(true);
}

export async function streams(): Promise<void> {
  for await (const line of streamOverview(portico, 'getAccountOverview', {
    sections: ['subscription', 'payment_method'],
  })) {
    if ('error' in line) line.error.detail.trim();
    else if (line.section === 'subscription') same<typeof line.data, Subscription>(true);
    else {
      line.section satisfies 'payment_method';
      // @ts-expect-error there may be no card
      line.data.id.toFixed();
    }
  }
  for await (const line of streamOverview(portico, 'getAccountOverview')) {
    if (line.section === 'subscription') same<typeof line.data, Subscription>(true);
  }
  for await (const line of streamOverview(portico, 'getAccountOverview', { fields: { subscription: ['plan'] } })) {
    if (line.section === 'subscription') same<typeof line.data, { plan: number }>(true);
  }
}

const onRetry = ({ problem, waitMs }: Retry) => void [problem.code.trim(), waitMs.toFixed()];

export async function watches(signal: AbortSignal): Promise<void> {
  for await (const { data, errors, meta } of watchOverview(portico, 'account-overview')) {
    same<typeof data.subscription, Subscription>(true);
    same<typeof data.payment_method, PaymentMethod | null>(true);
    meta.sections.referral_config.state.toUpperCase();
    errors.map(({ section }) => section);
  }
  const wanted = { sections: ['subscription'], fields: { subscription: ['plan'] }, signal } as const;
  for await (const { data } of watchOverview(portico, 'getAccountOverview', wanted))
    same<typeof data, { subscription: { plan: number } }>(true);
  watchOverview(portico, 'billing-overview', { sections: ['transactions'], pageSize: { transactions: 5 }, onRetry });
  watchOverview(portico, 'account-overview', {
    onRetry: ({ waitMs, problem }) => onRetry({ waitMs, problem, tries: 1 }),
  });
  // @ts-expect-error no overview
  watchOverview(portico, 'getSubscription');
  // @ts-expect-error nor that
  watchOverview(portico, 'accountOverview');
  // @ts-expect-error no section of this overview
  watchOverview(portico, 'account-overview', { sections: ['transactions'] });
  // @ts-expect-error no page
  watchOverview(portico, 'billing-overview', { pageSize: { subscription: 5 } });
  await portico.getBillingOverview({ page_size: { transactions: 5 } });
  // @ts-expect-error no page
  await portico.getBillingOverview({ page_size: { subscription: 5 } });
}

export function stores(): void {
  const store = { getItem: () => null, setItem() {} };
  createClient({ copies: keepCopies() });
  createClient({ copies: keepCopies({ most: 20, store, account: 'ann' }) });
  // @ts-expect-error whose?
  keepCopies({ store });
  touches('purchasePlan').includes('getSubscription');
  // @ts-expect-error no write
  touches('getSubscription');
}

export async function others(): Promise<void> {
  for await (const one of each(portico, 'listTransactions', { page_size: 100 })) same<typeof one, Transaction>(true);
  // @ts-expect-error no list
  each(portico, 'getSubscription');
  const { plan, cards } = await readBatch(portico, {
    plan: ['getSubscription'],
    cards: ['listPaymentMethods', { page: 1 }],
  });
  if (plan instanceof PorticoProblem) plan.code satisfies string;
  else same<typeof plan, Subscription>(true);
  if (!(cards instanceof PorticoProblem)) cards.results.map(({ last4 }) => last4);
  // @ts-expect-error a write
  await readBatch(portico, { a: ['createApiKey'] });
  const { data } = await portico.getBillingOverview();
  const { state } = await outcomeOf(portico, data);
  state satisfies 'bought' | 'begun' | 'under_way' | 'not_bought' | 'not_seen';
}

export async function queries(): Promise<void> {
  const query = queriesOf(portico, 'account');
  const { queryFn, queryKey } = query('getSubscription');
  const { signal } = new AbortController();
  same<Awaited<ReturnType<typeof queryFn>>, Subscription>(true);
  queryKey satisfies readonly [string, 'getSubscription', object];
  const some = await query('getAccountOverview', { sections: ['subscription'] }).queryFn({ signal });
  same<keyof typeof some.data, 'subscription'>(true);
  await query('getTransaction', { id: 5 }).queryFn({ signal });
  // @ts-expect-error an id is needed
  query('getTransaction');
  // @ts-expect-error a write
  query('purchasePlan');
  const pages = query.pages('listTransactions', { page_size: 5 });
  (await pages.queryFn({ signal, pageParam: pages.initialPageParam })).results.map(({ amount }) => amount);
}

export function problems(problem: PorticoProblem): string {
  problem.code satisfies Code;
  const help: Partial<Record<Code, string>> = { connection_failed: 'Are you online?', card_declined: 'Another card?' };
  return help[problem.code] ?? problem.errors['']?.[0]?.message ?? `in ${problem.retryAfter ?? 0} s`;
}
