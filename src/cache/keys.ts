import { type AccountId, type CacheKey, EVERYTHING, type Tag } from '../store/port.ts';
import type { OperationInput, Read } from '../upstream/call.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { Table } from '../upstream/table.ts';

/** Keys and tags are made only here. The store puts the account in front of the key. */
export function cacheKeyOf(account: AccountId, { operation, input }: Read, policy: CachePolicy | undefined): CacheKey {
  // Neither an operation id nor an `<ID>` can hold the delimiters, and the query comes last.
  const key = `${operation.id}/${input.id ?? ''}?${input.query}`;
  const freshMs = policy ? policy.fresh * 1000 : 0;
  return { account, key, tags: tagsOf(operation, input), freshMs, lifeMs: lifeOf(policy) };
}

const lifeOf = (policy: CachePolicy | undefined) =>
  policy ? (policy.fresh + Math.max(policy.stale, policy.onError)) * 1000 : 0;

/** What a copy may take until it is kept, and more. */
const NOTE_MARGIN_MS = 1_200_000;

/** How long the note of an account is kept when a copy is: longer than any copy. */
export const noteMsOf = ({ policyOf }: Policies, { operations }: Table): number =>
  NOTE_MARGIN_MS + Math.max(0, ...operations.map((operation) => lifeOf(policyOf(operation))));

interface Policies {
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
}

function tagsOf({ group }: Operation, { id }: OperationInput): Tag[] {
  if (!group) return [];
  return id === undefined ? [group] : [group, itemTag(group, id)];
}

/** The tags that a write invalidates. */
export function invalidatedBy({ invalidates = [] }: Operation, { id }: OperationInput): Tag[] {
  return invalidates.map((one) => {
    if (one === 'everything') return EVERYTHING;
    return typeof one === 'string' ? one : itemTag(one.item, id ?? '');
  });
}

/** Without leading zeros: the upstream takes `05` for `5`. */
const itemTag = (group: string, id: string): Tag => `${group}/${id.replace(/^0+(?=\d)/, '')}`;
