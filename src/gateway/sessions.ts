import { GatewayError } from '../core/errors.ts';
import type { Reader, Reading } from '../cache/reader.ts';
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
import type { Read, RequestContext, Whose } from '../upstream/call.ts';
import type { Via } from '../upstream/via.ts';
import type { GatewayDeps } from './deps.ts';
import { planOf, readsOf } from './plan.ts';
import type { Accepted, RateLimit, ReaderOf } from './who.ts';

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

/**
 * What the first overview that can be asked for after a sign-in will read; where there is none, any read that needs no id.
 * The first of them shows whether a token is any good.
 * @throws TypeError if there are sessions and no such read
 */
function warmingOf({ overviews, table, config }: GatewayDeps): readonly Read[] {
  const first = overviews.map(planOf).find(({ hasParameter }) => !hasParameter);
  if (first) return readsOf(first.partsFor(undefined), () => undefined);
  const any = table.operations.find(({ method, idForm, credential }) => method === 'GET' && !idForm && !credential);
  if (any) return [{ operation: any, input: { query: '' } }];
  if (config.sessions) throw new TypeError('SESSIONS needs a read without an id: it shows whether a key is any good');
  return [];
}

interface SessionTools {
  readonly accepted: Accepted;
  readonly limit: RateLimit;
  readonly readerOf: ReaderOf;
  readonly read: (read: Read, reader: Reader) => Promise<Reading>;
  readonly via: Via;
}

/** What beginning and ending sessions needs of the gateway. */
export function accountSessions(deps: GatewayDeps, { accepted, limit, readerOf, read, via }: SessionTools) {
  const { store, clock, digest } = deps;
  const [firstRead, ...otherReads] = warmingOf(deps);
  /** On whose behalf the store is asked. */
  const asking = (account: AccountId, context: RequestContext) => {
    return { account, owner: accepted.ownerOf(account, context), now: clock.now(), waitUntil: context.waitUntil };
  };

  /** The first read shows whether the account may read at all: a refused one costs one call, not four. */
  const warm = async (context: RequestContext, first: Promise<unknown>): Promise<void> => {
    try {
      await first;
      const reader = await readerOf(context, otherReads, { window: undefined });
      await Promise.allSettled(otherReads.map((other) => read(other, reader)));
      reader.snapshot.end?.();
    } catch {
      // The first overview tells.
    }
  };

  return {
    accountOf: (token: string): Soon<AccountId> => digest.account(token),
    /**
     * Before a session begins. `isCounted`: by its address, if nothing else counts it.
     * @throws GatewayError `loop_detected`, `rate_limited`, `store_unavailable`: only the store knows what the session's epoch is
     */
    async prepare(context: RequestContext, id: string, isCounted: boolean): Promise<void> {
      via.assertNew(context.via);
      const asked = asking(await digest.account(addressOwner(context.address)), context);
      const window = isCounted ? limit.address : undefined;
      const { use, session } = await store.snapshot({ ...asked, window, session: { id, epoch: 0 } });
      if (isCounted) limit.apply(context, limit.address, use);
      if (session?.isLocal) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
    },
    /**
     * Begins a session with a token: learns the epoch of the account's sessions, and reads what its first overview will
     * want, in the background and not counted. `isProven`: the upstream has just given the token; else it has to answer one
     * read with it first.
     * @throws GatewayError what that read is refused with
     */
    async begin(context: RequestContext, { token, id, isProven }: NewSession) {
      const account = (context.account = await digest.account(token));
      const own = contextOf(context, { credential: token, account, wants: isProven ? 'any' : 'no-cache' });
      const first = await readerOf(own, firstRead ? [firstRead] : [], { window: undefined, session: { id, epoch: 0 } });
      if (first.snapshot.session?.isLocal) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
      const reading = firstRead ? read(firstRead, first) : Promise.resolve();
      try {
        if (!isProven) await reading;
      } finally {
        context.upstreamCalls += own.upstreamCalls;
        context.upstreamMs += own.upstreamMs;
        context.reason ??= own.reason;
      }
      context.waitUntil(warm(contextOf(context, { credential: token, account, wants: 'any' }), reading));
      return { account, epoch: first.snapshot.session?.epoch ?? 0 };
    },
    /** Who signs out, which is not counted, and whether the session is over already. */
    async whose(context: RequestContext, session: SessionId): Promise<{ account: AccountId; isOver: boolean }> {
      const { account, snapshot } = await readerOf(context, [], { window: undefined, session });
      return { account, isOver: isSessionOver(session, snapshot.session) };
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

/** A session that is to begin with a token of the upstream. */
export interface NewSession {
  readonly token: string;
  readonly id: string;
  readonly isProven: boolean;
}

/** The request, as if it had come with this token. Its account is not counted. */
function contextOf(
  context: RequestContext,
  as: Pick<RequestContext, 'credential' | 'account' | 'wants'>,
): RequestContext {
  const { requestId, trace, span, userAgent, via, address, origin, mount, startedAt, endsAt, waitUntil } = context;
  // What does not prove the token goes on when the request is over.
  const signal = as.wants === 'no-cache' ? context.signal : new AbortController().signal;
  const client = {
    requestId,
    trace,
    span,
    userAgent,
    via,
    address,
    origin,
    mount,
    startedAt,
    endsAt,
    waitUntil,
    signal,
  };
  // What proves the token is waited for.
  const phases = as.wants === 'no-cache' ? (context.phases ??= []) : undefined;
  return { ...client, ...as, phases, upstreamCalls: 0, upstreamMs: 0 };
}
