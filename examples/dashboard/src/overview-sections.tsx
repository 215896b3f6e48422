import { Card } from './card.tsx';
import { Notifications } from './notifications.tsx';
import type { useOverview } from './overview.ts';
import { Plan } from './plan.tsx';
import { Referral } from './referral.tsx';
import { Section } from './section.tsx';
import { TITLES } from './sections.ts';

/** The four sections of the account overview, each in its place. */
type Props = Pick<ReturnType<typeof useOverview>, 'sections' | 'retry' | 'change'>;

export function OverviewSections({ sections, retry, change }: Props) {
  return (
    <>
      <Section
        title={TITLES.subscription}
        size="third"
        state={sections.subscription}
        onRetry={() => retry('subscription')}
      >
        {(subscription) => <Plan subscription={subscription} />}
      </Section>
      <Section
        title={TITLES.payment_method}
        size="third"
        state={sections.payment_method}
        onRetry={() => retry('payment_method')}
      >
        {(card) => <Card card={card} />}
      </Section>
      <Section
        title={TITLES.notifications}
        size="third"
        state={sections.notifications}
        onRetry={() => retry('notifications')}
      >
        {(page) => <Notifications page={page} />}
      </Section>
      <Section
        title={TITLES.referral_config}
        size="half"
        state={sections.referral_config}
        onRetry={() => retry('referral_config')}
      >
        {(config) => (
          <Referral
            config={config}
            onChanged={(data) => change('referral_config', (before) => ({ ...before, data }))}
          />
        )}
      </Section>
    </>
  );
}
