import type { ZodMiniType } from 'zod/mini';

export type IdForm = 'digits' | 'slug';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** How long an answer is served from the cache, in seconds (`contract.md` section 5). */
export interface CachePolicy {
  readonly fresh: number;
  /** How long after `fresh` it is served while it is refreshed. */
  readonly stale: number;
  /** How long after `fresh` it is served while the upstream fails. */
  readonly onError: number;
}

const cachedFor = (fresh: number, stale: number, onError: number): CachePolicy => ({ fresh, stale, onError });

/** What is cached and forgotten together, and how long: reads belong to a group, writes invalidate groups. */
const GROUPS = {
  subscription: cachedFor(30, 300, 3600),
  paymentMethods: cachedFor(30, 300, 3600),
  transactions: cachedFor(30, 60, 3600),
  pendingPayments: cachedFor(30, 60, 3600),
  referralConfig: cachedFor(30, 300, 3600),
  referralCredits: cachedFor(30, 60, 3600),
  earnOuts: cachedFor(30, 60, 3600),
  referralChannels: cachedFor(30, 300, 3600),
  subusers: cachedFor(10, 30, 600),
  ipAuthorizations: cachedFor(10, 30, 600),
  proxyActivity: cachedFor(10, 30, 600),
  notifications: cachedFor(10, 60, 3600),
  apiKeys: undefined,
  verificationFlows: undefined,
};

export type Group = keyof typeof GROUPS;

/** A group, the one item of a group that the path names, or all of the account. */
type Invalidated = 'everything' | Group | { readonly item: Group };

/** All that Portico knows of one upstream endpoint. */
export interface Row {
  /** Method, and path template with the trailing slash that the upstream always gets; `{id}` is the only parameter. */
  readonly at: `${Method} /api/v2/${string}/`;
  /** What an `<ID>` may look like if not digits. */
  readonly idForm?: 'slug';
  /** `none`: social register and login, which take no credential and never forward one. */
  readonly credential?: 'none';
  /** Documented query parameters, checked as text. Others are passed on. */
  readonly query?: Readonly<Record<string, ZodMiniType<unknown, string>>>;
  /** JSON body. `optional`: it may be empty. */
  readonly body?: { readonly schema: ZodMiniType; readonly optional?: true };
  /** Schema of a good answer; `null` for 204. */
  readonly answer: ZodMiniType | null;
  /** The answer is a page whose `next` and `previous` point at the upstream. */
  readonly paged?: true;
  /** Reads only, also uncached ones: a read after a write shares no call with reads from before it. */
  readonly group?: Group;
  /** Whatever its group. */
  readonly isUncached?: true;
  /** Writes only. */
  readonly invalidates?: readonly Invalidated[];
  /** Writes only. While one is under way, an equal one of the same account is refused. */
  readonly exclusive?: true;
  /** Writes only. Members of the body that are ignored when two are compared. */
  readonly notCompared?: ReadonlySet<string>;
  /** Fields of the answer or the body that are secrets: an answer with one is never cached. */
  readonly secrets?: readonly string[];
  /** Without one, its name in words is its summary. */
  readonly summary?: string;
  readonly description?: string;
}

/** A row with its name, which is also its `operationId`, log field, policy key and test title. */
export interface Operation extends Omit<Row, 'idForm' | 'summary'> {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly method: Method;
  readonly path: string;
  /** Present exactly when the path has `{id}`. */
  readonly idForm?: IdForm | undefined;
  /** Reads only. Absent: never cached. */
  readonly cache?: CachePolicy | undefined;
}

/** Names each row by its key. */
export function nameRows<const T extends Record<string, Row>>(tag: string, rows: T) {
  const named = Object.entries(rows).map(([id, row]) => {
    const [method = '', path = ''] = row.at.split(' ');
    const idForm = path.includes('{id}') ? (row.idForm ?? 'digits') : undefined;
    const cache = row.group && !row.isUncached ? GROUPS[row.group] : undefined;
    return [id, { summary: wordsOf(id), ...row, id, tag, method, path, idForm, cache }];
  });
  // The same keys and rows, each with its key as `id`.
  return Object.fromEntries(named) as { readonly [K in keyof T]: T[K] & Operation & { id: K } };
}

/** `getApiKey` becomes `Get API key`. */
function wordsOf(id: string): string {
  const words = id.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const written = words.replace(/ (api|id|ip) /, (word) => word.toUpperCase());
  return written.charAt(0).toUpperCase() + written.slice(1);
}

/** What an `<ID>` in a path may be (`contract.md` section 2); anything else is an unknown endpoint. */
export const ID_FORMS: Readonly<Record<IdForm, string>> = {
  digits: '[0-9]{1,19}',
  slug: '[A-Za-z0-9_-]{1,64}',
};
