import { GatewayError } from '../core/errors.ts';
import type { Reader, Reading } from '../cache/reader.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { BACKGROUND } from '../core/timeline.ts';
import { type AccountId, addressOwner, type SessionId, type Store } from '../store/port.ts';
import type { Read, RequestContext, Whose } from '../upstream/call.ts';
import type { Via } from '../upstream/via.ts';
import type { GatewayDeps } from './deps.ts';
import { firstAlone } from './first-alone.ts';
import { planOf } from './plan.ts';
import type { RateLimit, ReaderOf } from './who.ts';

/** For a request whose session was revoked. */
export const sessionOver = (): GatewayError =>
  GatewayError.of('unauthenticated', {
    detail: 'The session has ended. Sign in again.',
    fault: 'not_sent',
    headers: { 'WWW-Authenticate': 'Token' },
  });

/** An upstream that does not accept a session's key any more ends that session, and no other. */
export function endSession(store: Store, { account, context }: Whose, error: unknown): void {
  const isRefused = error instanceof GatewayError && error.status === 401 && !error.isUnsent;
  const { session, waitUntil } = context;
  if (isRefused && session && account !== undefined) waitUntil(store.revoke({ account, waitUntil }, session, 'one'));
}

/**
 * What the first overview that can be asked for after a sign-in will read; where there is none, any read that needs no id.
 * The first of them shows whether a token is any good.
 * @throws TypeError if there are sessions and no such read
 */
function warmingOf({ overviews, table, config }: GatewayDeps): readonly Read[] {
  const first = overviews.map(planOf).find(({ hasParameter }) => !hasParameter);
  if (first) return first.firstReads;
  const any = table.operations.find(({ method, idForm, credential }) => method === 'GET' && !idForm && !credential);
  if (any) return [{ operation: any, input: { query: '' } }];
  if (config.sessions) throw new TypeError('SESSIONS needs a read without an id: it shows whether a key is any good');
  return [];
}

interface SessionTools {
  readonly limit: RateLimit;
  readonly readerOf: ReaderOf;
  readonly read: (read: Read, reader: Reader, leg?: string) => Promise<Reading>;
  readonly via: Via;
}

/** What beginning and ending sessions needs of the gateway. */
export function accountSessions(deps: GatewayDeps, { limit, readerOf, read, via }: SessionTools) {
  const { store, digest } = deps;
  const warming = warmingOf(deps);
  /** @throws GatewayError `store_unavailable`: only the store knows under which epoch a session begins */
  const epochOf = async (account: AccountId): Promise<number> => {
    const epoch = await store.epochOf(account);
    if (epoch === undefined) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
    return epoch;
  };

  return {
    accountOf: (token: string): MaybePromise<AccountId> => digest.account(token),
    /**
     * Before a session begins. `isCounted`: by its address, if nothing else counts it.
     * @throws GatewayError `loop_detected`, `rate_limited`, `store_unavailable`
     */
    async prepare(context: RequestContext, isCounted: boolean): Promise<void> {
      via.assertNew(context.via);
      const account = await digest.account(addressOwner(context.address));
      const window = isCounted ? limit.address : undefined;
      const { use } = await store.snapshot({ account, window, waitUntil: context.waitUntil });
      if (isCounted) limit.apply(context, limit.address, use);
      await epochOf(account); // before the upstream gives a token: whether the store answers
    },
    /**
     * Begins a session with a token, which is the request's credential from now on: learns the epoch of the account's
     * sessions, and reads what its first overview will want, in the background and not counted. `isProven`: the upstream has
     * just given the token; else it has to answer one read with it first.
     * @throws GatewayError what that read is refused with
     */
    async begin(context: RequestContext, { token, isProven }: NewSession) {
      const account = (context.account = await digest.account(token));
      context.credential = token;
      context.cacheMode = isProven ? 'any' : 'no-cache';
      const epoch = await epochOf(account);
      const reader = await readerOf(context, warming, { window: undefined, session: undefined });
      const [first, ...others] = warming;
      if (!isProven && first) await read(first, reader);
      context.cacheMode = 'any';
      const reads = isProven ? warming : others;
      const warmed = firstAlone(reads, (one) => read(one, reader, BACKGROUND), !isProven);
      context.waitUntil(warmed.catch(() => undefined)); // the first overview tells
      return { account, epoch };
    },
    /** Who signs out, which is not counted, and whether the session is over already. */
    async whose(context: RequestContext, session: SessionId): Promise<{ account: AccountId; isOver: boolean }> {
      const { account, snapshot } = await readerOf(context, [], { window: undefined, session });
      return { account, isOver: snapshot.session?.isOver === true };
    },
    /** Whether a session still lives; false where only the store could tell, and it does not answer. */
    isLiving: async (context: RequestContext, session: SessionId): Promise<boolean> => {
      const account = context.account ?? (await digest.account(context.credential));
      const asked = await store.snapshot({ account, window: undefined, session, waitUntil: context.waitUntil });
      return asked.session !== undefined && !asked.session.isLocal && !asked.session.isOver;
    },
    /** Resolves with whether all instances know of it. */
    revoke: (
      { waitUntil }: RequestContext,
      account: AccountId,
      session: SessionId,
      which: 'one' | 'all',
    ): Promise<boolean> => store.revoke({ account, waitUntil }, session, which),
  };
}

/** A session that is to begin with a token of the upstream. */
export interface NewSession {
  readonly token: string;
  readonly isProven: boolean;
}
