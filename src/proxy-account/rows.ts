import { defineRows } from '../upstream/operation.ts';
import { account, notification, social, verification } from './account.ts';
import { billing } from './billing.ts';
import { proxy } from './proxy.ts';
import { referral } from './referral.ts';

/** The 29 endpoints of the account API of a proxy provider (`docs/upstream-api.md`), by operation id. */
export const proxyAccount = defineRows({
  ...account,
  ...billing,
  ...referral,
  ...proxy,
  ...notification,
  ...verification,
  ...social,
});
