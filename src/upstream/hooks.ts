import type { Problem } from '../core/errors.ts';
import { checkHeaders, checkName } from './hook-headers.ts';
import type { Method } from './operation.ts';

/** What a gateway does in its operator's way. Without hooks, and for an answer from the cache, they cost nothing. */
export interface Hooks {
  readonly onProblem?: OnProblem | undefined;
  readonly credential?: Credential | undefined;
  readonly headers?: FurtherHeaders | undefined;
}

/** The request that a problem is the answer to. */
export interface ProblemRequest {
  /** Its `operationId`; absent where it came to none. */
  readonly operation?: string | undefined;
  /** A header of it; the case of the name does not matter. */
  readonly header: (name: string) => string | undefined;
}

/**
 * Gives a problem as clients are to see it, for words in the language of the product, a link to help, a number for
 * support. What it returns may have `type`, `title`, `detail` and members of its own; what it leaves out stays as it is.
 *
 * It is asked for every problem: whole answers, items of a batch, refusals of the server, sections of overviews that
 * failed. Ours stay `status`, `code`, `request_id`, `instance`, `retryable`, `retry_after`, `outcome`, `section` and
 * `errors`: clients and retries act on them, and a `retryable` that is wrong may charge a user twice. Where it throws, or
 * returns something else than a plain JSON object, a promise too, the problem goes out as it was, and the log says so.
 */
export type OnProblem = (problem: ToldProblem, request: ProblemRequest) => object;

/** A problem as JSON has it: a new object, the hook's own. */
export type ToldProblem = Problem & Record<string, unknown>;

/**
 * How the client's key becomes the upstream's credential, since upstreams differ: `Authorization: Token <key>` (as is the
 * default) or `Bearer <key>`, the key alone in a header of this name, or what a function exchanges it for. Rows whose
 * `credential` is `none` send none, and the function is not asked for them.
 */
export type Credential = 'Token' | 'Bearer' | { readonly header: string } | Exchange;

/**
 * Exchanges a key, for an upstream that wants a token of another kind. It is asked once for each call of the upstream,
 * however often that is tried, and never for an answer from the cache. It gets the key and nothing else of the request, so
 * that what one account sends cannot depend on another's. `signal` is aborted when nobody waits any more or the time of
 * the request is over, which is a 504.
 *
 * A `GatewayError` that it throws is the answer, such as `unauthenticated`; whatever else it throws is a 502
 * `upstream_unreachable`, with its stack in the log. In each case nothing was sent, so a write may be repeated.
 */
export type Exchange = (key: string, options: { readonly signal: AbortSignal }) => Exchanged | Promise<Exchanged>;

/** What a key was exchanged for. */
export interface Exchanged {
  /** For the upstream. They are not shown to clients, even where the upstream repeats them in an error. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * How long they may be sent for the same account: 24 hours at most, or until the upstream says 401. They are kept in
   * the memory of this process, and equal exchanges at the same time are one. Without it they are for one call alone.
   */
  readonly forSeconds?: number | undefined;
}

/**
 * Further headers to the upstream: a name for the gateway, a signature, a date. A function is asked once for each call.
 * It learns which operation is called and nothing of the client's request: what the upstream answers is kept, and
 * is the answer to other requests of the account too.
 */
export type FurtherHeaders =
  | Readonly<Record<string, string>>
  | ((operation: CalledOperation) => Readonly<Record<string, string>>);

export interface CalledOperation {
  readonly id: string;
  readonly method: Method;
  /** As the row has it, with `{id}`. */
  readonly path: string;
}

/**
 * The hooks among the options of a gateway.
 * @throws TypeError in words for what they cannot be
 */
export function hooksOf({ onProblem, credential, headers }: Hooks): Hooks {
  if (onProblem !== undefined && typeof onProblem !== 'function') throw new TypeError('`onProblem` is not a function');
  checkCredential(credential);
  if (headers !== undefined && typeof headers !== 'function')
    checkHeaders('`headers`', headers, ownHeadersOf(credential));
  return { onProblem, credential, headers };
}

const SCHEMES: readonly unknown[] = ['Token', 'Bearer', undefined];

function checkCredential(credential: Credential | undefined): void {
  if (SCHEMES.includes(credential) || typeof credential === 'function') return;
  const isHeader = typeof credential === 'object' && credential !== null && typeof credential.header === 'string';
  if (!isHeader) throw new TypeError("`credential` is neither 'Token', 'Bearer', `{ header: <name> }` nor a function");
  checkName('`credential`', credential.header);
}

/** Names, in lower case, that the hook `headers` may not set: they have the credential. */
export const ownHeadersOf = (credential: Credential | undefined): readonly string[] =>
  typeof credential === 'object' ? ['authorization', credential.header.toLowerCase()] : ['authorization'];
