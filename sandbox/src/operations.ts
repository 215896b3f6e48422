import { proxyAccount } from '../../src/proxy-account/index.ts';

/** What the sandbox answers, by operation id. */
export const operations = proxyAccount;

export type OperationId = keyof typeof operations;

export const allOperations = Object.values(operations);
