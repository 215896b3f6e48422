import type { Instant } from '../time.ts';

export interface Dated {
  created_at: Instant;
  updated_at: Instant;
}

export const datedAt = (instant: Instant): Dated => ({ created_at: instant, updated_at: instant });
