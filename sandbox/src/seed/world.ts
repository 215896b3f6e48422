import { sandboxAccounts } from '../accounts.ts';
import type { Account, Credential, World } from '../state.ts';
import type { Instant } from '../time.ts';
import { seedAccounts } from './accounts.ts';

const FIRST_NEW_ID = 100_001;

/** The data before the first call. The same `now` gives the same data. */
export function createWorld(now: Instant): World {
  let lastId = FIRST_NEW_ID - 1;
  const accounts = new Map<string, Account>();
  const credentials = new Map<string, Credential>();
  for (const [index, { name, key }] of sandboxAccounts.entries()) {
    const account = seedAccounts[name]((index + 1) * 1000, now);
    accounts.set(name, account);
    credentials.set(key, { account, kind: 'dashboard' });
  }
  return { accounts, credentials, nextId: () => (lastId += 1) };
}
