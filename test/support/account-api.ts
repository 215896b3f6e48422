import type { Overview } from '../../src/gateway/overview.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { tableOf } from '../../src/upstream/table.ts';

/** The tables that most tests are played with: those of the account API, as `npm start` has them. */
export const operations = proxyAccount;

export type OperationId = keyof typeof operations;

export const allOperations: readonly (Operation & { readonly id: OperationId })[] = Object.values(operations);

export const accountTable = tableOf(operations);

/** The operations at a path of the upstream. */
export const matchPath = (path: string) => accountTable.at(path);

export const allOverviews: readonly Overview[] = overviews;

/** As a gateway is made with them. */
export const accountTables = { table: accountTable, overviews: allOverviews };
