import { fromPath, overview } from 'portico';
import { rows } from '../generated/chain.ts';

export { rows };

const ofPath = { stake_address: fromPath('address') };

export const overviews = [
  overview(
    '/bff/v1/stakes/:address/overview',
    {
      stake: { read: rows.getAccountsStakeAddress, params: ofPath, required: true },
      rewards: { read: rows.getAccountsStakeAddressRewards, params: ofPath, query: { count: 2 } },
      block: { read: rows.getBlocksLatest },
    },
    ({ stake, rewards, block }) => ({
      isActive: stake.active,
      height: block?.height,
      rewards: rewards?.map(({ amount }) => amount),
    }),
  ),
];
