import type { Notification, VerificationFlow } from '../resources/account.ts';
import { datedAt } from '../resources/dated.ts';
import { DAY, HOUR, type Instant } from '../time.ts';

/** Three of two types, the oldest one dismissed. */
export function seedNotifications(firstId: number, plan: number, now: Instant): Notification[] {
  const notification = (offset: number, type: string, age: number): Notification => ({
    id: firstId + offset,
    type,
    is_dismissable: offset !== 2,
    context: { plan },
    ...datedAt(now - age),
    dismissed_at: null,
  });
  const dismissedAt = now - 20 * DAY;
  return [
    {
      ...notification(0, 'too_much_bandwidth_too_little_proxies', 40 * DAY),
      updated_at: dismissedAt,
      dismissed_at: dismissedAt,
    },
    notification(1, 'too_much_bandwidth_too_little_proxies', 5 * DAY),
    notification(2, 'subscription_renewal_upcoming', 6 * HOUR),
  ];
}

/** A flow with evidence from the user. */
export function seedVerificationFlow(id: number, now: Instant): VerificationFlow {
  const startedAt = now - 3 * DAY;
  return {
    id,
    type: 'acceptable_use_violation',
    state: 'inflow',
    started_at: startedAt,
    updated_at: startedAt + DAY,
    needs_evidence: true,
    evidence: {
      id: id + 1,
      explanation: 'The requests were a load test of our own site.',
      ...datedAt(startedAt + DAY),
      files: [{ id: id + 2, created_at: startedAt + DAY, file: `evidence/${id + 2}.pdf` }],
    },
    id_verification_restores_access: true,
    id_verification_required: false,
  };
}
