import type { CachePolicy, Operation } from '../../src/upstream/operation.ts';
import { allOperations, type OperationId, operations } from './account-api.ts';

/** Operations by kind, as the table has them: what is promised of a kind is tested of every row of it. */

const rows: readonly (Operation & { readonly id: OperationId })[] = allOperations;

const idsOf = (isMeant: (row: Operation) => boolean): readonly OperationId[] =>
  rows.filter(isMeant).map(({ id }) => id);

export const rowOf = (id: OperationId): Operation => operations[id];

export const readIds = idsOf(({ method }) => method === 'GET');
export const writeIds = idsOf(({ method }) => method !== 'GET');
export const cachedIds = idsOf(({ cache }) => cache !== undefined);
export const uncachedIds = readIds.filter((id) => !cachedIds.includes(id));

export const postIds = idsOf(({ method }) => method === 'POST');
export const bodiedIds = postIds.filter((id) => rowOf(id).body);
export const bodilessIds = postIds.filter((id) => !rowOf(id).body);
export const itemIds = postIds.filter((id) => rowOf(id).idForm);

/** They have no account, so what the upstream limits of one says nothing about them. */
export const socialIds = idsOf(({ credential }) => credential === 'none');
export const accountIds = postIds.filter((id) => !socialIds.includes(id));
export const isSocial = (id: OperationId): boolean => socialIds.includes(id);

/** Seconds; zero for what is never cached. */
export const policyOf = (id: OperationId): CachePolicy => rowOf(id).cache ?? { fresh: 0, stale: 0, onError: 0 };

/** Whether a write changes what a read shows, where both are of the same item. */
const isInvalidated = ({ invalidates = [], idForm }: Operation, read: Operation): boolean =>
  invalidates.some((one) => {
    if (typeof one === 'object') return one.item === read.group && read.idForm !== undefined && read.idForm === idForm;
    return one === 'everything' || one === read.group;
  });

/** The reads whose copies a write invalidates. */
export const invalidatedReads = (write: OperationId): readonly OperationId[] =>
  cachedIds.filter((id) => isInvalidated(rowOf(write), rowOf(id)));

/** The reads that are never cached, and join no call from before the write. */
export const partedBy = (write: OperationId): readonly OperationId[] =>
  uncachedIds.filter((id) => isInvalidated(rowOf(write), rowOf(id)));
