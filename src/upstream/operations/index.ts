import type { Operation } from '../operation.ts';
import { account } from './account.ts';
import { billing } from './billing.ts';
import { notification } from './notification.ts';
import { proxy } from './proxy.ts';
import { referral } from './referral.ts';
import { social } from './social.ts';
import { verification } from './verification.ts';

/** The upstream's 29 endpoints, by operation id. Everything else reads this table. */
export const operations = {
  ...account,
  ...billing,
  ...referral,
  ...proxy,
  ...notification,
  ...verification,
  ...social,
};

export type OperationId = keyof typeof operations;

export const allOperations: readonly (Operation & { id: OperationId })[] = Object.values(operations);
