import { Card } from './card.tsx';
import { Notifications } from './notifications.tsx';
import type { useOverview } from './overview.ts';
import { Plan } from './plan.tsx';
import { Referral } from './referral.tsx';
import { Section } from './section.tsx';

/** The four sections of the account overview, each in its place. */
export function OverviewSections({ sections, retry, change }: ReturnType<typeof useOverview>) {
  return (
    <>
      <Section title="Plan" size="third" state={sections.subscription} onRetry={() => retry('subscription')}>
        {(subscription) => <Plan subscription={subscription} />}
      </Section>
      <Section title="Card" size="third" state={sections.payment_method} onRetry={() => retry('payment_method')}>
        {(card) => <Card card={card} />}
      </Section>
      <Section title="Notifications" size="third" state={sections.notifications} onRetry={() => retry('notifications')}>
        {(page) => <Notifications page={page} />}
      </Section>
      <Section title="Referrals" size="half" state={sections.referral_config} onRetry={() => retry('referral_config')}>
        {(config) => <Referral config={config} onChanged={(data) => change('referral_config', { data })} />}
      </Section>
    </>
  );
}
