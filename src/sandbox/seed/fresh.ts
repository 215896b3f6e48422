import type { Account } from '../state.ts';
import type { Instant } from '../time.ts';
import { blankAccount } from './blank.ts';

/** The account of someone who has just registered. */
export function freshAccount(name: string, now: Instant, nextId: () => number): Account {
  const ids = { plan: nextId(), subscription: nextId(), referralConfig: nextId(), idVerification: nextId() };
  return blankAccount({ name, ids, bornAt: now, now });
}
