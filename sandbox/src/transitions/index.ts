import type { Account, World } from '../state.ts';
import { MINUTE, type Instant } from '../time.ts';
import { renew, resume, settleCharges } from './billing.ts';
import { earnOut, matureCredits } from './referral.ts';

/** How long an ID verification takes. */
const VERIFICATION_TIME = MINUTE;

/** Brings an account up to `now`. Done before each of its calls, since the sandbox has no timers. */
export function applyTransitions(account: Account, world: World, now: Instant): void {
  resume(account, now);
  settleCharges(account, world, now);
  renew(account, world, now);
  matureCredits(account, now);
  earnOut(account, world, now);
  concludeVerification(account, now);
}

function concludeVerification({ idVerification, verificationOutcome }: Account, now: Instant): void {
  const concludedAt = idVerification.updated_at + VERIFICATION_TIME;
  if (idVerification.state !== 'pending' || concludedAt > now) return;
  idVerification.state = verificationOutcome;
  idVerification.updated_at = concludedAt;
  if (verificationOutcome === 'failed') idVerification.verification_failure_times += 1;
  else idVerification.verified_at = concludedAt;
}
