import type { EarnOut, ReferralChannel, ReferralConfig, ReferralCredit } from '../resources/referral.ts';
import { datedAt } from '../resources/dated.ts';
import { usd } from '../state.ts';
import { DAY, HOUR, type Instant } from '../time.ts';

const GRACE = 14 * DAY;

/** Above 2^53: a client that reads it as a number loses the last digits. */
const LARGE_USER_ID = 9007199254740993123n;

/** Three channels: a percentage, an amount, and one that has ended. */
export function seedChannels(firstId: number, now: Instant): ReferralChannel[] {
  const channel: ReferralChannel = {
    id: firstId,
    code: 'SAVE20',
    description: 'Twenty percent off',
    promo_type: 'percent_off',
    promo_value: '0.20',
    is_active: true,
    is_recurring: true,
    start_date: now - 180 * DAY,
    end_date: null,
    total_uses: 80,
    total_commission: 402.5,
    total_revenue: 1610,
    initial_rate: '0.25',
    ongoing_rate: '0.10',
    initial_rate_period_days: 90,
    max_earnings_per_referred: '250.00',
    created_at: now - 181 * DAY,
  };
  const value = { promo_type: 'value_off', promo_value: '5.00', is_recurring: false } as const;
  const over = { is_active: false, end_date: now - 30 * DAY, total_uses: 0, total_commission: 0, total_revenue: 0 };
  return [
    channel,
    { ...channel, ...value, id: firstId + 1, code: 'FIVEOFF', description: '' },
    { ...channel, ...over, id: firstId + 2, code: 'SPRING', description: 'Spring campaign' },
  ];
}

/** One every eight hours, oldest first. Those in their grace period are pending. */
export function seedCredits(
  count: number,
  firstId: number,
  channels: readonly ReferralChannel[],
  now: Instant,
): ReferralCredit[] {
  return Array.from({ length: count }, (_, index) => {
    const age = count - 1 - index;
    const createdAt = now - age * 8 * HOUR - HOUR;
    const channel = channels[index % 3];
    return {
      id: firstId + index,
      user_id: age === 0 && channels.length > 0 ? LARGE_USER_ID : 7000 + (index % 60),
      mode: index % 10 === 9 ? 'payout' : 'credits',
      amount: 2.5 + (index % 7) * 1.25,
      referral_channel: index % 3 === 2 ? null : (channel?.id ?? null),
      referral_channel_code: index % 3 === 2 ? null : (channel?.code ?? null),
      created_at: createdAt,
      ...outcomeOf(index, createdAt, now),
    };
  });
}

/** Every twentieth was reverted, three days after it was made. */
function outcomeOf(index: number, createdAt: Instant, now: Instant) {
  const revertedAt = createdAt + 3 * DAY;
  if (index % 20 === 7 && revertedAt <= now) {
    return { status: 'reverted', updated_at: revertedAt, reverted_at: revertedAt } as const;
  }
  if (createdAt + GRACE > now) return { status: 'pending', updated_at: createdAt, reverted_at: null } as const;
  return { status: 'completed', updated_at: createdAt + GRACE, reverted_at: null } as const;
}

/** One a week; the oldest payout failed, the newest one is still processing. */
export function seedEarnOuts(count: number, firstId: number, now: Instant): EarnOut[] {
  return Array.from({ length: count }, (_, index) => {
    const newest = index === count - 1;
    const failed = index === 0;
    const payout = newest || failed || index % 4 === 0;
    return {
      id: firstId + index,
      mode: payout ? 'payout' : 'credits',
      wallet_payout_email: payout && !failed ? 'affiliate@wallet.example' : null,
      amount: 20 + (index % 5) * 2.5,
      status: earnOutStatus(failed, newest),
      error_reason: failed ? 'wallet_payout_email_missing' : null,
      ...datedAt(now - (count - 1 - index) * 7 * DAY - 12 * HOUR),
    };
  });
}

function earnOutStatus(failed: boolean, newest: boolean): EarnOut['status'] {
  if (failed) return 'failed';
  return newest ? 'processing' : 'completed';
}

export function seedTotals(credits: readonly ReferralCredit[]): Partial<ReferralConfig> {
  const sum = (mode: ReferralCredit['mode']) =>
    usd(
      credits
        .filter((credit) => credit.mode === mode && credit.status === 'completed')
        .reduce((total, { amount }) => total + amount, 0),
    );
  const users = new Set(credits.map((credit) => credit.user_id)).size;
  return {
    total_credits_earned: sum('credits'),
    total_payouts_earned: sum('payout'),
    number_of_users_referred: users + 12,
    number_of_users_upgraded: users,
  };
}
