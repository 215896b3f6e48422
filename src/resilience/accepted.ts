import { GatewayError } from '../core/errors.ts';
import { BoundedMap } from '../store/bounded.ts';
import { addressOwner, type Owner } from '../store/owner.ts';
import type { AccountId } from '../store/store.ts';
import type { Gate } from './gates.ts';

const MAX_ACCOUNTS = 50_000;

/** The accounts that the upstream has accepted, as this instance has seen; the most recent ones are kept. */
export interface Accepted extends Gate {
  /** Whose share a request takes: the account's if it is accepted, else the address's. */
  ownerOf(account: AccountId | undefined, client: { readonly address: string }): Owner;
}

export function acceptedAccounts(): Accepted {
  const accounts = new BoundedMap<AccountId, true>({ max: MAX_ACCOUNTS });
  const has = (account: AccountId) => accounts.get(account) === true;
  return {
    ownerOf: (account, { address }) => (account !== undefined && has(account) ? account : addressOwner(address)),
    settled({ call: { account, owner } }, { answer, error }) {
      if (account === undefined) return;
      if (answer && owner !== account) accounts.set(account, true, account);
      if (error instanceof GatewayError && error.status === 401) accounts.delete(account);
    },
  };
}
