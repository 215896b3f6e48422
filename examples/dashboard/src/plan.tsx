import type { Answer } from 'portico-client';
import { Facts } from './facts.tsx';
import { day, money, spoken } from './words.ts';

type Subscription = Answer<'getSubscription'>;

export function Plan({ subscription }: { readonly subscription: Subscription }) {
  const { plan, term, free_credits, renewals_paid, paused, reactivation_date } = subscription;
  return (
    <>
      <p className="figure">
        No. {plan} <small>{spoken(term)}</small>
      </p>
      <Facts
        of={{
          Renewal: renewalOf(subscription),
          Paused: paused && reactivation_date !== null ? `until ${day(reactivation_date)}` : null,
          'Renewals paid': renewals_paid,
          Credit: money(free_credits),
        }}
      />
    </>
  );
}

function renewalOf({ renewals_enabled, end_date }: Subscription): string {
  return renewals_enabled ? `on ${day(end_date)}` : `none, ends on ${day(end_date)}`;
}
