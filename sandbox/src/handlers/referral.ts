import * as z from 'zod';
import type { referral as rows } from '../../../src/proxy-account/referral.ts';
import { checkFields } from '../body.ts';
import { byId, ok, type Answer, type Call, type Handler } from '../call.ts';
import { fieldRefusedAsText, NO_SUCH } from '../errors.ts';
import { documentedOrdering, integerParameter, orderBy } from '../filters.ts';
import { paginate } from '../paging.ts';
import type { ReferralCredit } from '../resources/referral.ts';

/** The only writable fields; others are ignored. */
const changes = z.object({
  mode: z.enum(['payout', 'credits']).optional(),
  wallet_payout_email: z.email().nullable().optional(),
});

function updateConfig({ account, body, now }: Call): Answer {
  const { mode, wallet_payout_email: wallet } = checkFields(changes, body);
  const config = account.referralConfig;
  if (mode !== undefined) config.mode = mode;
  if (wallet !== undefined) config.wallet_payout_email = wallet;
  config.updated_at = now;
  return ok(config);
}

const ORDERINGS = ['id', 'mode', 'amount', 'status', 'created_at', 'updated_at', 'reverted_at'] as const;

function listCredits(call: Call): Answer {
  const { account, query, url } = call;
  const credits = account.referralCredits.filter(
    (credit) => fits(query, 'mode', credit.mode) && fits(query, 'status', credit.status),
  );
  const ordering = documentedOrdering(query, ORDERINGS, '-id');
  return ok(paginate(orderBy(ofChannel(call, credits), ordering), url));
}

const fits = (query: URLSearchParams, name: string, value: string) => (query.get(name) || value) === value;

/** An empty `referral_channel` asks for the credits that came without one. */
function ofChannel({ account, query }: Call, credits: readonly ReferralCredit[]): readonly ReferralCredit[] {
  if (query.get('referral_channel') === '') return credits.filter((credit) => credit.referral_channel === null);
  const wanted = integerParameter(query, 'referral_channel');
  if (wanted === null) return credits;
  const channel = account.referralChannels.find(({ id }) => id === wanted);
  if (!channel) throw fieldRefusedAsText('referral_channel', NO_SUCH);
  return credits.filter((credit) => credit.referral_channel === channel.id);
}

export const referralHandlers: Record<keyof typeof rows, Handler> = {
  getReferralConfig: ({ account }) => ok(account.referralConfig),
  updateReferralConfig: updateConfig,
  listReferralCredits: listCredits,
  getReferralCredit: ({ account, id }) => ok(byId(account.referralCredits, id)),
  listEarnOuts: ({ account, url }) => ok(paginate(orderBy(account.earnOuts, '-id'), url)),
  getEarnOut: ({ account, id }) => ok(byId(account.earnOuts, id)),
  listReferralChannels: ({ account }) => ok(orderBy(account.referralChannels, 'id')),
};
