import { GatewayError } from '../core/errors.ts';
import type { Reader, RequestContext } from '../cache/reader.ts';
import type { Soon } from '../core/runtime.ts';
import type { Gate, Settled } from '../resilience/gates.ts';
import {
  type AccountId,
  addressOwner,
  isSessionOver,
  type Revoked,
  type SessionId,
  type Store,
} from '../store/store.ts';
import type { Read, Whose } from '../upstream/call.ts';
import type { Accepted, GatewayDeps, RateLimit, ReaderOf } from './reader.ts';

/** For a request whose session was revoked. */
export const sessionOver = (): GatewayError =>
  GatewayError.of('unauthenticated', {
    detail: 'The session has ended. Sign in again.',
    fault: 'not_sent',
    headers: { 'WWW-Authenticate': 'Token' },
  });

/** An upstream that does not accept a session's key any more ends that session, and no other. */
export function endSession(store: Pick<Store, 'revoke'>, { account, context }: Whose, error: unknown): void {
  const isRefused = error instanceof GatewayError && error.status === 401 && !error.isUnsent;
  const { session, waitUntil } = context;
  if (isRefused && session && account !== undefined)
    waitUntil(store.revoke({ account, now: context.startedAt, waitUntil }, session));
}

/** For the request that a call is made for, also in the background. */
export function endingSessions(store: Pick<Store, 'revoke'>): Gate {
  const settled: Settled = ({ call }, { error }) => endSession(store, call, error);
  return () => settled;
}

interface SessionTools {
  readonly accepted: Accepted;
  readonly limit: RateLimit;
  readonly readerOf: ReaderOf;
}

/** What beginning and ending sessions needs of the gateway. */
export function accountSessions({ store, clock, digest }: GatewayDeps, { accepted, limit, readerOf }: SessionTools) {
  /** On whose behalf the store is asked. */
  const asking = (account: AccountId, context: RequestContext) => {
    return { account, owner: accepted.ownerOf(account, context), now: clock.now(), waitUntil: context.waitUntil };
  };
  return {
    accountOf: (token: string): Soon<AccountId> => digest.account(token),
    /** Of reads that their client has not asked for: they are not counted. `id`: of a session that begins. */
    reader: (context: RequestContext, reads: readonly Read[], id?: string): Soon<Reader> =>
      readerOf(context, () => reads, { window: undefined, session: id === undefined ? undefined : { id, epoch: 0 } }),
    /**
     * Before a session begins. `isCounted`: by its address, if nothing else counts it.
     * @throws GatewayError `rate_limited`, `store_unavailable`: only the store knows what the session's epoch is
     */
    async prepare(context: RequestContext, id: string, isCounted: boolean): Promise<void> {
      const account = await digest.account(addressOwner(context.address));
      const window = isCounted ? limit.address : undefined;
      const { use, session } = await store.snapshot({
        ...asking(account, context),
        window,
        session: { id, epoch: 0 },
      });
      if (isCounted) limit.apply(context, limit.address, use);
      if (session?.isLocal) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
    },
    /** Who signs out: that is not counted. @throws GatewayError `unauthenticated` if the session is over already */
    async assertOpen(context: RequestContext, session: SessionId): Promise<AccountId> {
      const { account, snapshot } = await readerOf(context, () => [], { window: undefined, session });
      if (isSessionOver(session, snapshot.session)) throw sessionOver();
      return account;
    },
    /** Whether a session still lives; false where only the store could tell, and it does not answer. */
    isLiving: async (context: RequestContext, session: SessionId): Promise<boolean> => {
      if (context.snapshot?.session?.isLocal) return false; // it did not answer a moment ago
      const account = context.account ?? (await digest.account(context.credential));
      const asked = await store.snapshot({ ...asking(account, context), window: undefined, session });
      return asked.session !== undefined && !asked.session.isLocal && !isSessionOver(session, asked.session);
    },
    /** Resolves with whether all instances know of it. */
    revoke: (context: RequestContext, account: AccountId, revoked: Revoked): Promise<boolean> =>
      store.revoke(asking(account, context), revoked),
  };
}
