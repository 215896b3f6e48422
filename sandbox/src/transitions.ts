import { pay, settlePayments } from './payments.ts';
import { example } from './resource.ts';
import { activePlan, usd, type Account, type World } from './state.ts';
import { DAY, MINUTE, parseDays, TERM, type Instant } from './time.ts';

/** How long an ID verification takes. */
const VERIFICATION_TIME = MINUTE;

/** How long the wallet takes to pay out. */
const PAYOUT_TIME = DAY;

/** Brings an account up to `now`. Done before each of its calls, since the sandbox has no timers. */
export function applyTransitions(account: Account, world: World, now: Instant): void {
  resume(account, now);
  settlePayments(account, world, now);
  renew(account, world, now);
  earnOut(account, world, now);
  concludeVerification(account, now);
}

/** Resumes a paused subscription at its reactivation date, with the period that was left. */
function resume({ subscription }: Account, now: Instant): void {
  const { paused, reactivation_date: resumedAt, reactivation_period_left: left } = subscription;
  if (!paused || resumedAt === null || now < resumedAt) return;
  subscription.end_date = resumedAt + (left === null ? TERM : parseDays(left));
  subscription.start_date = subscription.end_date - TERM;
  subscription.paused = false;
  subscription.reactivation_date = null;
  subscription.reactivation_period_left = null;
  subscription.updated_at = resumedAt;
}

/** Renews term after term until one ends after `now`, or is not paid. */
function renew(account: Account, world: World, now: Instant): void {
  const { subscription } = account;
  while (!subscription.paused && subscription.end_date <= now && renewOnce(account, world)) {
    subscription.start_date = subscription.end_date;
    subscription.end_date += TERM;
    subscription.updated_at = subscription.start_date;
  }
}

function renewOnce(account: Account, world: World): boolean {
  const { paymentMethods, subscription } = account;
  const plan = activePlan(account);
  if (plan.price === 0) return true;
  plan.paid &&= subscription.renewals_enabled;
  if (!plan.paid) return false;
  const at = subscription.end_date;
  const card = paymentMethods.find(({ id }) => id === subscription.payment_method);
  pay(account, world, { price: plan.price, card, at, isRenewal: true });
  settlePayments(account, world, at);
  if (plan.paid) subscription.renewals_paid += 1;
  else subscription.failed_payment_times += 1;
  return plan.paid;
}

/** Runs every earn-out that is due. A payout takes its time. */
function earnOut(account: Account, world: World, now: Instant): void {
  const { referralConfig: config, earnOuts } = account;
  for (; config.next_earn_out_date <= now; config.next_earn_out_date += parseDays(config.earn_out_frequency)) {
    if (config.credits_earned >= config.minimum_earn_out_amount) convertToCredits(account, world.nextId());
    if (config.payouts_earned >= config.minimum_earn_out_amount) payOut(account, world.nextId());
  }
  for (const payout of earnOuts) {
    if (payout.status !== 'processing' || payout.created_at + PAYOUT_TIME > now) continue;
    payout.status = 'completed';
    payout.updated_at = payout.created_at + PAYOUT_TIME;
  }
}

function convertToCredits({ referralConfig: config, earnOuts, subscription }: Account, id: number): void {
  earnOuts.push(example('getEarnOut', config.next_earn_out_date, { id, amount: config.credits_earned }));
  subscription.free_credits = usd(subscription.free_credits + config.credits_earned);
  config.credits_earned = 0;
}

/** Without a wallet the earn-out fails, and the earnings stay for the next one. */
function payOut({ referralConfig: config, earnOuts }: Account, id: number): void {
  const { next_earn_out_date: at, payouts_earned: amount, wallet_payout_email: wallet } = config;
  const payout = example('getEarnOut', at, { id, mode: 'payout', amount, wallet_payout_email: wallet });
  payout.status = wallet === null ? 'failed' : 'processing';
  payout.error_reason = wallet === null ? 'wallet_payout_email_missing' : null;
  earnOuts.push(payout);
  if (wallet !== null) config.payouts_earned = 0;
}

/** One that has failed before fails again. */
function concludeVerification({ idVerification }: Account, now: Instant): void {
  const concludedAt = idVerification.updated_at + VERIFICATION_TIME;
  if (idVerification.state !== 'pending' || concludedAt > now) return;
  idVerification.updated_at = concludedAt;
  if (idVerification.verification_failure_times > 0) {
    idVerification.state = 'failed';
    idVerification.verification_failure_times += 1;
  } else {
    idVerification.state = 'verified';
    idVerification.verified_at = concludedAt;
  }
}
