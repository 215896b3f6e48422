import { example } from '../resource.ts';
import type { Account } from '../state.ts';
import { DAY, HOUR, type Instant } from '../time.ts';
import type { Seed } from './blank.ts';

const GRACE = 14 * DAY;

/** Above 2^53: a client that reads it as a number loses the last digits. */
const LARGE_USER_ID = 9007199254740993123n;

/** Three channels: a percentage, an amount, and one that has ended. */
export function seedChannels({ base, now }: Seed): Account['referralChannels'] {
  const begun = now - 180 * DAY;
  const value = { promo_type: 'value_off', promo_value: '5.00' };
  const over = { is_active: false, end_date: now - 30 * DAY, total_uses: 0, total_commission: 0, total_revenue: 0 };
  return [
    example('listReferralChannels', begun, { id: base + 51, is_recurring: true }),
    example('listReferralChannels', begun, { id: base + 52, code: 'FIVEOFF', ...value }),
    example('listReferralChannels', begun, { id: base + 53, code: 'SPRING', description: 'Spring campaign', ...over }),
  ];
}

/** One every eight hours, oldest first. Those in their grace period are pending. */
export const seedCredits = (
  count: number,
  channels: Account['referralChannels'],
  { base, now }: Seed,
): Account['referralCredits'] =>
  Array.from({ length: count }, (_, index) => {
    const age = count - 1 - index;
    const createdAt = now - age * 8 * HOUR - HOUR;
    const channel = index % 3 === 2 ? undefined : channels[index % 3];
    return example('getReferralCredit', createdAt, {
      id: base + 501 + index,
      user_id: age === 0 && channels.length > 0 ? LARGE_USER_ID : 7000 + (index % 60),
      mode: index % 10 === 9 ? 'payout' : 'credits',
      amount: 2.5 + (index % 7) * 1.25,
      referral_channel: channel?.id ?? null,
      referral_channel_code: channel?.code ?? null,
      ...outcomeOf(index, createdAt, now),
    });
  });

/** Every twentieth was reverted, three days after it was made. */
function outcomeOf(index: number, createdAt: Instant, now: Instant) {
  const revertedAt = createdAt + 3 * DAY;
  if (index % 20 === 7 && revertedAt <= now)
    return { status: 'reverted', updated_at: revertedAt, reverted_at: revertedAt };
  return createdAt + GRACE > now ? {} : { status: 'completed', updated_at: createdAt + GRACE };
}

/** One a week; the oldest one is a payout that failed, the newest one a payout that is still processing. */
export const seedEarnOuts = (count: number, { base, now }: Seed): Account['earnOuts'] =>
  Array.from({ length: count }, (_, index) => {
    const failed = { mode: 'payout', status: 'failed', error_reason: 'wallet_payout_email_missing' };
    const processing = { mode: 'payout', status: 'processing', wallet_payout_email: 'affiliate@wallet.example' };
    return example('getEarnOut', now - (count - 1 - index) * 7 * DAY - 12 * HOUR, {
      id: base + 401 + index,
      amount: 20 + (index % 5) * 2.5,
      ...(index === 0 && failed),
      ...(index === count - 1 && processing),
    });
  });
