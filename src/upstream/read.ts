import { type CacheKey, EVERYTHING, type Tag } from '../store/port.ts';
import type { CachePolicy, Operation } from './operation.ts';
import type { Table } from './table.ts';

/** A row that is a GET, with the policy in force. Its read without id and query is made once. */
export class ReadRow {
  readonly operation: Operation;
  /** Undefined if its answers are never cached. */
  readonly policy: CachePolicy | undefined;
  /** How long a copy is fresh, and how long it is usable at all, in milliseconds. Both 0: never cached. */
  readonly freshMs: number;
  readonly lifeMs: number;
  readonly #plain: Read;

  constructor(operation: Operation, policy: CachePolicy | undefined) {
    this.operation = operation;
    this.policy = policy;
    this.freshMs = policy ? policy.fresh * 1000 : 0;
    this.lifeMs = policy ? (policy.fresh + Math.max(policy.stale, policy.onError)) * 1000 : 0;
    this.#plain = new Read(this, undefined, '');
  }

  /** `id`: the values of the path's parameters, joined by slashes and already of the row's forms. `query`: as the client sent it, without the question mark. */
  read(id: string | undefined, query: string): Read {
    return id === undefined && query === '' ? this.#plain : new Read(this, id, query);
  }
}

/** One GET with its id and query, and the key of its copy. The store puts the account in front of the key. */
export class Read implements CacheKey {
  readonly row: ReadRow;
  readonly id: string | undefined;
  readonly query: string;
  readonly key: string;
  readonly tags: readonly Tag[];
  readonly freshMs: number;
  readonly lifeMs: number;

  constructor(row: ReadRow, id: string | undefined, query: string) {
    const { operation } = row;
    this.row = row;
    this.id = id;
    this.query = query;
    this.key = `${operation.id}/${id ?? ''}?${query}`; // a name has no slash, values have no question mark
    this.tags = tagsOf(operation.group, id);
    this.freshMs = row.freshMs;
    this.lifeMs = row.lifeMs;
  }

  get operation(): Operation {
    return this.row.operation;
  }
}

const tagsOf = (group: string | undefined, id: string | undefined): Tag[] => {
  if (group === undefined) return [];
  return id === undefined ? [group] : [group, itemTag(group, id)];
};

/** The tags that a write invalidates. */
export const invalidatedBy = ({ invalidates = [] }: Operation, id = ''): Tag[] =>
  invalidates.flatMap((one) => {
    if (one === 'everything') return EVERYTHING;
    if (typeof one === 'string') return one;
    const values = id.split('/');
    return values.map((_, last) => itemTag(one.item, values.slice(0, last + 1).join('/')));
  });

/** The tag of one item. Without leading zeros and capitals: an upstream takes `05` for `5`, and a UUID in either case. */
const itemTag = (group: string, id: string): Tag => `${group}/${id.replaceAll(/(?<![^/])0+(?=\d)/g, '').toLowerCase()}`;

/** The rows of a gateway that are read, each prepared when the gateway is made. */
export class ReadRows {
  readonly #rows: ReadonlyMap<Operation, ReadRow>;

  constructor({ operations }: Table, { policyOf }: Policies) {
    const reads = operations.filter(({ method }) => method === 'GET');
    this.#rows = new Map(reads.map((operation) => [operation, new ReadRow(operation, policyOf(operation))]));
  }

  /** @throws TypeError for an operation that is no GET of this gateway */
  of(operation: Operation): ReadRow {
    const row = this.#rows.get(operation);
    if (!row) throw new TypeError(`\`${operation.id}\` is no read of this gateway`);
    return row;
  }
}

/** Milliseconds. More than it takes until a copy is stored. */
const NOTE_MARGIN_MS = 1_200_000;

interface Policies {
  /** The policy in force; undefined for a row whose answers are never cached. */
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
}

/** How long a shared store keeps the note of an account, in milliseconds: longer than any copy. */
export const noteMsOf = ({ policyOf }: Policies, { operations }: Table): number =>
  NOTE_MARGIN_MS + Math.max(0, ...operations.map((one) => new ReadRow(one, policyOf(one)).lifeMs));
