import { exposition, type Scraped } from './exposition.ts';
import type { ManualClock } from '../support/clock.ts';
import { type Env, openWorld, type World, type AtEnd } from '../support/world.ts';

export const REQUESTS = 'portico_request_duration_seconds_count';
export const CALLS = 'portico_upstream_calls_total';
export const READS = 'portico_cache_reads_total';

export interface Measured extends World {
  readonly scrape: () => Promise<Scraped>;
}

/** A world with an admin listener, whose upstream answers whatever it is asked. */
export async function openMeasured(
  env: Env = {},
  options: { readonly atEnd?: AtEnd; readonly clock?: ManualClock } = {},
): Promise<Measured> {
  const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '600', ...env }, { hasAdmin: true, ...options });
  world.answerAll();
  return { ...world, scrape: async () => exposition((await world.admin({ path: '/metrics' })).text) };
}
