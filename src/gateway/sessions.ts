import { GatewayError } from '../core/errors.ts';
import type { Reader, Reading } from '../cache/reader.ts';
import type { Soon } from '../core/runtime.ts';
import { BEHIND } from '../core/timeline.ts';
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
import { firstAlone } from './first-alone.ts';
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
  readonly read: (read: Read, reader: Reader, leg?: string) => Promise<Reading>;
  readonly via: Via;
}

/** What beginning and ending sessions needs of the gateway. */
export function accountSessions(deps: GatewayDeps, { accepted, limit, readerOf, read, via }: SessionTools) {
  const { store, clock, digest } = deps;
  const warming = warmingOf(deps);
  /** On whose behalf the store is asked. */
  const asking = (account: AccountId, context: RequestContext) => {
    return { account, owner: accepted.ownerOf(account, context), now: clock.now(), waitUntil: context.waitUntil };
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
     * Begins a session with a token, which is the request's credential from now on: learns the epoch of the account's
     * sessions, and reads what its first overview will want, in the background and not counted. `isProven`: the upstream has
     * just given the token; else it has to answer one read with it first.
     * @throws GatewayError what that read is refused with
     */
    async begin(context: RequestContext, { token, id, isProven }: NewSession) {
      const account = (context.account = await digest.account(token));
      context.credential = token;
      context.wants = isProven ? 'any' : 'no-cache';
      const open = (reads: readonly Read[]) =>
        readerOf(context, reads, { window: undefined, session: { id, epoch: 0 } });
      const [first, ...others] = warming;
      const reader = await open(isProven || !first ? warming : [first]);
      const { session } = reader.snapshot;
      if (session?.isLocal) throw GatewayError.of('store_unavailable', { retryAfter: 1 });
      if (!isProven && first) await read(first, reader);
      context.wants = 'any';
      const warm = async () => {
        const own = isProven ? reader : await open(others); // with leases, which a read with `no-cache` has none of
        context.snapshot = undefined; // given back here, since the request may be over
        await firstAlone(own.reads, (one) => read(one, own, BEHIND), !isProven).finally(() => own.snapshot.end?.());
      };
      context.waitUntil(warm().catch(() => undefined)); // the first overview tells
      return { account, epoch: session?.epoch ?? 0 };
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
