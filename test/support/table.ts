import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations, type OperationId, operations } from './account-api.ts';

/** Operations by kind, as the table has them. */

const rows: readonly (Operation & { readonly id: OperationId })[] = allOperations;

const idsOf = (isMeant: (row: Operation) => boolean): readonly OperationId[] =>
  rows.filter(isMeant).map(({ id }) => id);

export const rowOf = (id: OperationId): Operation => operations[id];

export const readIds = idsOf(({ method }) => method === 'GET');
export const writeIds = idsOf(({ method }) => method !== 'GET');
export const postIds = idsOf(({ method }) => method === 'POST');

const socialIds = idsOf(({ credential }) => credential === 'none');
/** It has no account. */
export const isSocial = (id: OperationId): boolean => socialIds.includes(id);

/** Whether a write changes what a read shows, where both are of the same item. */
const isInvalidated = ({ invalidates = [], params }: Operation, read: Operation): boolean =>
  invalidates.some((one) => {
    if (typeof one === 'object') return one.item === read.group && 'id' in params && read.params['id'] === params['id'];
    return one === 'everything' || one === read.group;
  });

const invalidated = (write: OperationId, isCached: boolean) =>
  readIds.filter((id) => (rowOf(id).cache !== undefined) === isCached && isInvalidated(rowOf(write), rowOf(id)));

/** The reads whose copies a write invalidates. */
export const invalidatedReads = (write: OperationId): readonly OperationId[] => invalidated(write, true);

/** The reads that are never cached, and join no call from before the write. */
export const partedBy = (write: OperationId): readonly OperationId[] => invalidated(write, false);
