import type { EarnOut, ReferralConfig, ReferralCredit } from '../resources/referral.ts';
import { datedAt } from '../resources/dated.ts';
import { usd, type Account, type World } from '../state.ts';
import { DAY, parseDuration, type Instant } from '../time.ts';

/** How long the wallet takes to pay out. */
const PAYOUT_TIME = DAY;

/** A credit becomes available when its grace period is over. */
export function matureCredits({ referralConfig, referralCredits }: Account, now: Instant): void {
  const grace = parseDuration(referralConfig.referral_payment_pending_days);
  for (const credit of referralCredits) {
    if (credit.status === 'pending' && credit.created_at + grace <= now) accrue(referralConfig, credit, grace);
  }
}

function accrue(config: ReferralConfig, credit: ReferralCredit, grace: number): void {
  credit.status = 'completed';
  credit.updated_at = credit.created_at + grace;
  if (credit.mode === 'credits') {
    config.credits_earned = usd(config.credits_earned + credit.amount);
    config.total_credits_earned = usd(config.total_credits_earned + credit.amount);
  } else {
    config.payouts_earned = usd(config.payouts_earned + credit.amount);
    config.total_payouts_earned = usd(config.total_payouts_earned + credit.amount);
  }
}

/** Runs every earn-out that is due. */
export function earnOut(account: Account, world: World, now: Instant): void {
  const { referralConfig: config, earnOuts } = account;
  completePayouts(earnOuts, now);
  while (config.next_earn_out_date <= now) {
    const at = config.next_earn_out_date;
    if (config.credits_earned >= config.minimum_earn_out_amount) convertToCredits(account, world.nextId(), at);
    if (config.payouts_earned >= config.minimum_earn_out_amount) payOut(account, world.nextId(), at);
    config.next_earn_out_date = at + parseDuration(config.earn_out_frequency);
  }
  completePayouts(earnOuts, now);
}

function completePayouts(earnOuts: readonly EarnOut[], now: Instant): void {
  for (const payout of earnOuts) {
    if (payout.status !== 'processing' || payout.created_at + PAYOUT_TIME > now) continue;
    payout.status = 'completed';
    payout.updated_at = payout.created_at + PAYOUT_TIME;
  }
}

function convertToCredits({ referralConfig, earnOuts, subscription }: Account, id: number, at: Instant): void {
  const amount = referralConfig.credits_earned;
  earnOuts.push({
    id,
    mode: 'credits',
    wallet_payout_email: null,
    amount,
    status: 'completed',
    error_reason: null,
    ...datedAt(at),
  });
  subscription.free_credits = usd(subscription.free_credits + amount);
  referralConfig.credits_earned = 0;
}

/** Without a wallet the earn-out fails, and the earnings stay for the next one. */
function payOut({ referralConfig, earnOuts }: Account, id: number, at: Instant): void {
  const wallet = referralConfig.wallet_payout_email;
  earnOuts.push({
    id,
    mode: 'payout',
    wallet_payout_email: wallet,
    amount: referralConfig.payouts_earned,
    status: wallet === null ? 'failed' : 'processing',
    error_reason: wallet === null ? 'wallet_payout_email_missing' : null,
    ...datedAt(at),
  });
  if (wallet !== null) referralConfig.payouts_earned = 0;
}
