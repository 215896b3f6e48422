import * as z from 'zod/mini';
import {
  dated,
  decimal,
  documented,
  duration,
  flag,
  identifier,
  integer,
  number,
  resource,
  text,
  timestamp,
} from '../upstream/fields.ts';
import { pageOf } from '../upstream/page.ts';
import { anyText, idText, orderingText, paging } from '../upstream/parameters.ts';
import { chapter, RECORDS, SETTINGS } from './chapter.ts';

const config = resource('ReferralConfig', {
  id: identifier('one per user; never changes', 9),
  mode: text('`payout` or `credits`; writable', 'credits'),
  wallet_payout_email: z.nullable(text('address of the wallet that receives payouts; writable', '<EMAIL>')),
  id_verification_required: flag('needed once the account qualifies for a payout', false),
  credits_earned: number('USD that the next earn-out turns into credits', 12.5),
  payouts_earned: number('USD that the next earn-out pays out', 0),
  total_credits_earned: number('USD', 40),
  total_payouts_earned: number('USD', 0),
  number_of_users_referred: number('unique users referred', 3),
  number_of_users_upgraded: number('unique users who upgraded', 1),
  earn_out_frequency: duration('time between earn-outs', '7 00:00:00'),
  next_earn_out_date: timestamp('when the next earn-out is'),
  minimum_earn_out_amount: number('USD needed for an earn-out', 10),
  referral_code: text('unique code of the user', 'abc123'),
  referral_url: text('URL that carries the code', 'https://provider.example/?referral_code=abc123'),
  promo_type: text('promotion that referrals receive', 'first_time_value_off'),
  promo_value: integer('value of that promotion', 5),
  referral_maximum_credits: number('most USD that a single referral can earn', 250),
  referral_credit_ratio: number('fraction of a referral purchase that is earned', 0.25),
  referral_payment_pending_days: duration('grace period before a credit becomes available', '14 00:00:00'),
  ...dated,
});

const credit = resource('ReferralCredit', {
  id: identifier('identifier', 1501),
  user_id: identifier('id of the referred user who spent money', 1001),
  mode: text('`credits` is the one documented', 'credits'),
  amount: z.union([number('USD earned', 2.5), decimal('USD earned', '2.50')]),
  status: text('`pending` is the one documented', 'pending'),
  referral_channel: z.nullable(identifier('id of the channel that produced it', 2)),
  referral_channel_code: z.nullable(text('code of that channel', 'SAVE20')),
  ...dated,
  reverted_at: z.nullable(timestamp('when it was reverted')),
});

const earnOut = resource('EarnOut', {
  id: identifier('identifier', 1401),
  mode: text('`payout` or `credits`', 'credits'),
  wallet_payout_email: z.nullable(text('wallet that received the funds of a payout', '<EMAIL>')),
  amount: number('USD earned out', 12.5),
  status: text('`processing`, `completed` or `failed`', 'completed'),
  error_reason: z.nullable(text('the error of a failed one', 'wallet_rejected')),
  ...dated,
});

const channel = resource('ReferralChannel', {
  id: identifier('identifier', 2),
  code: text('coupon code; case does not matter', 'SAVE20'),
  description: text('may be empty', ''),
  promo_type: text('`percent_off` or `value_off`', 'percent_off'),
  promo_value: decimal('0 to 1 for percent_off, USD for value_off', '0.20'),
  is_active: flag('false: new users cannot apply it', true),
  is_recurring: flag('true: at every renewal; false: first purchase only', false),
  start_date: timestamp('from when it is applicable'),
  end_date: z.nullable(timestamp('after it the code cannot be applied')),
  total_uses: integer('distinct redemptions', 12),
  total_commission: number('USD commission earned', 30.25),
  total_revenue: number('USD paid net of refunds', 121),
  initial_rate: decimal('commission rate in the initial period', '0.25'),
  ongoing_rate: decimal('commission rate after it', '0.10'),
  initial_rate_period_days: integer('days from the first transaction', 90),
  max_earnings_per_referred: decimal('most USD of commission from one user', '250.00'),
  created_at: timestamp('when it was made'),
});

const changes = documented(
  z
    .strictObject({
      mode: z.optional(z.enum(['payout', 'credits'])),
      wallet_payout_email: documented(z.optional(z.nullable(z.email())), { examples: ['someone@wallet.example'] }),
    })
    .check(z.refine((body) => Object.keys(body).length > 0, 'expected mode, wallet_payout_email or both')),
  { id: 'UpdateReferralConfigBody', minProperties: 1 },
);

const referralCredits = { group: 'referralCredits', cache: RECORDS } as const;
const earnOuts = { group: 'earnOuts', cache: RECORDS } as const;

/** The referral and affiliate program (`upstream-api.md`, endpoints 12 to 18). */
export const referral = chapter('Referral', 'The referral and affiliate program.', {
  getReferralConfig: { at: 'GET /api/v2/referral/config/', answer: config, group: 'referralConfig', cache: SETTINGS },
  updateReferralConfig: {
    at: 'PATCH /api/v2/referral/config/',
    body: { schema: changes },
    answer: config,
    invalidates: ['referralConfig'],
    summary: 'Change how referral earnings are paid',
  },
  listReferralCredits: {
    at: 'GET /api/v2/referral/credit/',
    query: {
      ...paging,
      mode: anyText(),
      status: anyText(),
      referral_channel: documented(z.union([idText, z.literal('')], 'expected an integer'), {
        description: 'channel id; empty: credits without one',
      }),
      ordering: orderingText('id', 'mode', 'amount', 'status', 'created_at', 'updated_at', 'reverted_at'),
    },
    ...pageOf(credit),
    ...referralCredits,
  },
  getReferralCredit: { at: 'GET /api/v2/referral/credit/{id}/', answer: credit, ...referralCredits },
  listEarnOuts: { at: 'GET /api/v2/referral/earnout/', query: paging, ...pageOf(earnOut), ...earnOuts },
  getEarnOut: { at: 'GET /api/v2/referral/earnout/{id}/', answer: earnOut, ...earnOuts },
  listReferralChannels: {
    at: 'GET /api/v2/referral/channel/',
    answer: documented(z.array(channel), { id: 'ReferralChannelList' }),
    group: 'referralChannels',
    cache: SETTINGS,
    description: 'A plain array, ordered by id.',
  },
});
