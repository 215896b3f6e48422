import { type AccountId, type CacheKey, EVERYTHING, type Tag } from '../store/store.ts';
import type { OperationInput, Read } from '../upstream/call.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';

/** Keys and tags are made only here. The store puts the account in front of the key. */
export function cacheKeyOf(account: AccountId, { operation, input }: Read, policy: CachePolicy | undefined): CacheKey {
  // Neither an operation id nor an `<ID>` can hold the delimiters, and the query comes last.
  const key = `${operation.id}/${input.id ?? ''}?${input.query}`;
  const freshMs = policy ? policy.fresh * 1000 : 0;
  const lifeMs = policy ? freshMs + Math.max(policy.stale, policy.onError) * 1000 : 0;
  return { account, key, tags: tagsOf(operation, input), freshMs, lifeMs };
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
