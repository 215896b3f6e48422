import { type AccountId, EVERYTHING, type Place, type Tag, type Versions } from '../store/store.ts';
import type { Group, Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';

/** The only place where keys and tags are made. Keys start with the account, which the store puts before them. */
export function placeOf(account: AccountId, operation: Operation, input: OperationInput): Place {
  // Neither an operation id nor an `<ID>` can hold the delimiters, and the query comes last.
  const key = `${operation.id}/${input.id ?? ''}?${input.query}`;
  return { account, key, tags: tagsOf(operation, input) };
}

function tagsOf({ group }: Operation, { id }: OperationInput): Tag[] {
  if (!group) return [];
  return id === undefined ? [group] : [group, itemTag(group, id)];
}

/**
 * What equal reads under way are joined by. The versions are part of it: who reads after a write never joins a call
 * from before it. `kind` keeps apart what may not answer for each other.
 */
export function flightKey({ account, key }: Place, versions: Versions, kind: string): string {
  return `${account} ${kind} ${versions} ${key}`;
}

/** What a write makes worthless. */
export function touchedBy({ touches = [] }: Operation, { id }: OperationInput): Tag[] {
  return touches.map((touch) => {
    if (touch === 'everything') return EVERYTHING;
    return typeof touch === 'string' ? touch : itemTag(touch.item, id ?? '');
  });
}

/** The upstream takes `05` for `5`. */
const itemTag = (group: Group, id: string): Tag => `${group}/${id.replace(/^0+(?=\d)/, '')}`;
