import type { Cache } from '../cache/read.ts';
import { GatewayError } from '../core/errors.ts';
import type { ClientRequest } from '../core/request.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { BACKGROUND } from '../core/timeline.ts';
import { type AccountId, addressOwner, type SessionId } from '../store/port.ts';
import type { Read, ReadRows } from '../upstream/read.ts';
import { type Admission, firstAlone } from './admission.ts';
import type { GatewayDeps } from './deps.ts';
import { planOf } from './plan.ts';

/** A session that is to begin with a token. */
export interface NewSession {
  readonly token: string;
  /** Whether the upstream has just given the token. If not, the upstream has to answer one read with it first. */
  readonly isProven: boolean;
}

/** What beginning and ending sessions needs of the gateway. */
export class AccountSessions {
  readonly #admission: Admission;
  readonly #read: Cache['read'];
  readonly #warming: readonly Read[];

  /** @throws TypeError if there are sessions and no read that shows whether a key is any good */
  constructor(admission: Admission, rows: ReadRows, read: Cache['read']) {
    this.#admission = admission;
    this.#read = read;
    this.#warming = warmingOf(admission.deps, rows);
  }

  /**
   * Checks before a session begins. `isCounted`: whether to count the request by its address: a write counts itself.
   * @throws GatewayError `loop_detected`, `rate_limited`, `store_unavailable`
   */
  async prepare(request: ClientRequest, isCounted: boolean): Promise<void> {
    const { limit, deps } = this.#admission;
    this.#admission.assertNew(request);
    const account = await deps.digest.account(addressOwner(request.address));
    const window = isCounted ? limit.address : undefined;
    const { use } = await deps.store.snapshot({ account, window, waitUntil: request.waitUntil });
    if (isCounted) limit.apply(request, limit.address, use);
    await this.#epochOf(account); // fails before the upstream gives a token, if the store does not answer
  }

  /**
   * Begins a session with a token, which is the request's credential from now on: learns the epoch of the account's
   * sessions, and reads what its first overview will want, in the background and not counted.
   * @throws GatewayError what that read is refused with
   */
  async begin(request: ClientRequest, { token, isProven }: NewSession) {
    const admission = this.#admission;
    const account = (request.account = await admission.deps.digest.account(token));
    request.credential = token;
    request.cacheMode = isProven ? 'any' : 'no-cache';
    const epoch = await this.#epochOf(account);
    const snapshot = await admission.snapshot(request, this.#warming, { window: undefined, session: undefined });
    const [first, ...others] = this.#warming;
    if (!isProven && first) await this.#read(first, request, snapshot);
    request.cacheMode = 'any';
    const read = async (one: Read) => this.#read(one, request, snapshot, { leg: BACKGROUND });
    const warmed = firstAlone(isProven ? this.#warming : others, read, !isProven);
    request.waitUntil(warmed.catch(() => undefined)); // the first overview tells
    return { account, epoch };
  }

  /** The account that signs out, and whether its session is over already. Does not count the request. */
  async signingOut(request: ClientRequest, session: SessionId): Promise<{ account: AccountId; isOver: boolean }> {
    const account = await this.#admission.accountOf(request);
    const snapshot = await this.#admission.snapshot(request, [], { window: undefined, session });
    return { account, isOver: snapshot.session?.isOver === true };
  }

  accountOf(token: string): MaybePromise<AccountId> {
    return this.#admission.deps.digest.account(token);
  }

  /** Whether a session still lives. False where only the store could tell, and the store does not answer. */
  async isLiving(request: ClientRequest, session: SessionId): Promise<boolean> {
    const { digest, store } = this.#admission.deps;
    const account = request.account ?? (await digest.account(request.credential));
    const asked = await store.snapshot({ account, window: undefined, session, waitUntil: request.waitUntil });
    return asked.session !== undefined && !asked.session.isLocal && !asked.session.isOver;
  }

  /** Ends one session, or all of the account. Resolves with whether all instances know of it. */
  revoke({ waitUntil }: ClientRequest, account: AccountId, session: SessionId, which: 'one' | 'all'): Promise<boolean> {
    return this.#admission.deps.store.revoke({ account, waitUntil }, session, which);
  }

  /** @throws GatewayError `store_unavailable`: only the store knows under which epoch a session begins */
  async #epochOf(account: AccountId): Promise<number> {
    const epoch = await this.#admission.deps.store.epochOf(account);
    if (epoch === undefined) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
    return epoch;
  }
}

/**
 * The reads that warm the cache after a sign-in: those of the first overview without a parameter; without one, any read that
 * needs no id. The first read shows whether a token is any good.
 */
function warmingOf({ overviews, table, config }: GatewayDeps, rows: ReadRows): readonly Read[] {
  const first = overviews.map((one) => planOf(one, rows)).find(({ hasParameters }) => !hasParameters);
  if (first) return first.firstReads;
  const any = table.operations.find(
    ({ method, params, credential }) => method === 'GET' && Object.keys(params).length === 0 && !credential,
  );
  if (any) return [rows.of(any).read(undefined, '')];
  if (config.sessions) throw new TypeError('SESSIONS needs a read without an id: it shows whether a key is any good');
  return [];
}
