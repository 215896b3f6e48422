import type { Handler } from '../call.ts';
import type { OperationId } from '../operations.ts';
import { accountHandlers } from './account.ts';
import { billingHandlers } from './billing.ts';
import { proxyHandlers } from './proxy.ts';
import { referralHandlers } from './referral.ts';
import { socialHandlers } from './social.ts';

/** A row of the table without a handler here does not compile. */
export const handlers: Record<OperationId, Handler> = {
  ...accountHandlers,
  ...billingHandlers,
  ...referralHandlers,
  ...proxyHandlers,
  ...socialHandlers,
};
