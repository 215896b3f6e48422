import type { OperationId, operations } from '../operations.ts';
import type { Handler, OpenHandler } from '../call.ts';
import { accountHandlers } from './account.ts';
import { billingHandlers } from './billing.ts';
import { notificationHandlers } from './notification.ts';
import { proxyHandlers } from './proxy.ts';
import { referralHandlers } from './referral.ts';
import { socialHandlers } from './social.ts';
import { verificationHandlers } from './verification.ts';

type Rows = typeof operations;

/** Operations that take no credential. */
export type OpenOperationId = {
  [K in OperationId]: Rows[K] extends { credential: 'none' } ? K : never;
}[OperationId];

export const openHandlers: Record<OpenOperationId, OpenHandler> = socialHandlers;

/** A row of the table without a handler here does not compile. */
export const handlers: Record<Exclude<OperationId, OpenOperationId>, Handler> = {
  ...accountHandlers,
  ...billingHandlers,
  ...referralHandlers,
  ...proxyHandlers,
  ...notificationHandlers,
  ...verificationHandlers,
};

export const isOpen = (id: OperationId): id is OpenOperationId => id in openHandlers;
