import { example } from '../resource.ts';
import type { Account } from '../state.ts';
import { DAY, HOUR } from '../time.ts';
import type { Seed } from './blank.ts';

/** Three of two types, the oldest one dismissed. */
export function seedNotifications({ base, now }: Seed): Account['notifications'] {
  const dismissedAt = now - 20 * DAY;
  const dismissed = { updated_at: dismissedAt, dismissed_at: dismissedAt };
  const renewal = { type: 'subscription_renewal_upcoming', is_dismissable: false };
  const context = { plan: base + 3 };
  return [
    example('listNotifications', now - 40 * DAY, { id: base + 101, context, ...dismissed }),
    example('listNotifications', now - 5 * DAY, { id: base + 102, context }),
    example('listNotifications', now - 6 * HOUR, { id: base + 103, context, ...renewal }),
  ];
}
