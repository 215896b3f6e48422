import type { referral as rows } from '../../../src/proxy-account/referral.ts';
import { byId, ok, type Answer, type Call, type Handler } from '../call.ts';
import { fieldRefusedAsText, NO_SUCH } from '../errors.ts';
import { checkFields } from '../input.ts';
import { list } from '../list.ts';
import { operations } from '../operations.ts';

function updateConfig({ account, body, now }: Call): Answer {
  const { mode, wallet_payout_email: wallet } = checkFields(operations.updateReferralConfig.body.schema, body);
  const config = account.referralConfig;
  if (mode !== undefined) config.mode = mode;
  if (wallet !== undefined) config.wallet_payout_email = wallet;
  config.updated_at = now;
  return ok(config);
}

/** An empty `referral_channel` asks for the credits that came without one. */
function listCredits(call: Call): Answer {
  const channel = call.query.get('referral_channel') || null;
  if (channel !== null && !call.account.referralChannels.some(({ id }) => String(id) === channel)) {
    throw fieldRefusedAsText('referral_channel', NO_SUCH);
  }
  return list(call.account.referralCredits, call);
}

export const referralHandlers: Record<keyof typeof rows, Handler> = {
  getReferralConfig: ({ account }) => ok(account.referralConfig),
  updateReferralConfig: updateConfig,
  listReferralCredits: listCredits,
  getReferralCredit: ({ account, id }) => ok(byId(account.referralCredits, id)),
  listEarnOuts: (call) => list(call.account.earnOuts, call),
  getEarnOut: ({ account, id }) => ok(byId(account.earnOuts, id)),
  listReferralChannels: ({ account }) => ok(account.referralChannels),
};
