import { example } from '../resource.ts';
import type { Account } from '../state.ts';
import { DAY, HOUR } from '../time.ts';
import type { Seed } from './blank.ts';

/** Two sub-users: the first with a custom proxy list, the second without. */
export function seedSubusers(planId: number, { base, now }: Seed): Account['subusers'] {
  const subuser = example('getSubuser', now - 60 * DAY, {
    stats_start_date: now - 6 * DAY,
    stats_end_date: now,
    bandwidth_use_start_date: now - 12 * DAY,
    bandwidth_use_end_date: now + 18 * DAY,
  });
  return [
    { ...subuser, id: base + 81, planId, hasCustomList: true },
    { ...subuser, id: base + 82, label: 'monitor', planId, hasCustomList: false },
  ];
}

/** One that is in use and one that never was on the active plan, one more on the plan before it. */
export function seedIpAuthorizations(active: number, before: number, { base, now }: Seed): Account['ipAuthorizations'] {
  const authorization = example('getIpAuthorization', now - 50 * DAY);
  return [
    { ...authorization, id: base + 91, last_used_at: now - 2 * HOUR, planId: active },
    { ...authorization, id: base + 92, ip_address: '198.51.100.8', planId: active },
    { ...authorization, id: base + 93, ip_address: '198.51.100.9', planId: before },
  ];
}
