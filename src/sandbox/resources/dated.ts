import type { Instant } from '../time.ts';

export interface Dated {
  created_at: Instant;
  updated_at: Instant;
}
