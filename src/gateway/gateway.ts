import type { Reader, Reading } from '../cache/reader.ts';
import { ReadThrough } from '../cache/read-through.ts';
import { whenDone, type MaybePromise } from '../core/runtime.ts';
import { UpstreamCalls } from '../resilience/call.ts';
import type { AccountId } from '../store/port.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { OperationInput, Read, RequestContext } from '../upstream/call.ts';
import type { GatewayDeps } from './deps.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import { AcceptedAccounts, isCounted, rateLimit, readers, type Reads } from './who.ts';
import { accountSessions, endSession, sessionOver } from './sessions.ts';
import { Waiting } from './waiting.ts';
import { write, type Written } from './write.ts';
import { upstreamClient } from '../upstream/client.ts';
import { Via } from '../upstream/via.ts';

export type Gateway = ReturnType<typeof createGateway>;

/** The one way to upstream data: every route, section and batch item comes through here. */
export function createGateway(deps: GatewayDeps) {
  const { config, store } = deps;
  const accepted = new AcceptedAccounts(store);
  const via = new Via(deps.digest.gatewayId);
  const { policyOf, requestTimeoutMs: timeoutMs, upstreamTimeoutMs: attemptTimeoutMs } = config;
  const exchange = upstreamClient({ ...deps, via, maxBodyBytes: config.upstreamMaxBodyBytes, attemptTimeoutMs });
  const calls = new UpstreamCalls({
    ...deps,
    exchange,
    onOutcome(call, outcome) {
      accepted.learn(call, outcome);
      endSession(store, call, outcome.error); // of the request that the call is made for, also in the background
    },
  });
  const cache = new ReadThrough({ ...deps, calls, timeoutMs, check: checkInput, policyOf });
  const limit = rateLimit(deps, config.rateLimitPerMinute);
  const readerOf = readers(deps, accepted);
  const waiting = new Waiting(deps);
  const writeTools = { ...deps, calls, limit, accepted, waiting };
  /** A GET that no fresh copy answers, through the cache. @throws GatewayError */
  const read = async (one: Read, reader: Reader, leg?: string): Promise<Reading> => {
    try {
      return await cache.read(one, reader, leg);
    } catch (error) {
      endSession(store, reader, error); // the call may be another request's, of another session
      throw error;
    }
  };
  const reader = (context: RequestContext, reads: Reads): MaybePromise<Reader> => {
    const { session } = context;
    const window = isCounted(context) ? undefined : limit.account;
    return whenDone(readerOf(context, reads, { window, session }), (counted) => {
      limit.apply(context, limit.account, counted.snapshot.use);
      if (counted.snapshot.session?.isOver) throw sessionOver();
      return counted;
    });
  };
  return {
    /**
     * Counts the request and asks the store for the keys of what it will read; without waiting where state and hashes
     * are this process's.
     * @throws GatewayError `loop_detected`, `unauthenticated`, `rate_limited`
     */
    reader(context: RequestContext, reads: Reads = []): MaybePromise<Reader> {
      via.assertNew(context.via);
      return reader(context, reads);
    },
    read,
    /** @throws GatewayError `unauthenticated` */
    async accountOf(context: RequestContext): Promise<AccountId> {
      return (context.account ??= await deps.digest.account(context.credential));
    },
    waiting,
    sessions: accountSessions(deps, { limit, readerOf, read, via }),
    /** Anything else: counted, then sent once, never through the cache. @throws GatewayError, also what `input` throws */
    async write(
      operation: Operation,
      input: () => Promise<OperationInput>,
      context: RequestContext,
      key = context.idempotencyKey,
    ): Promise<Written> {
      via.assertNew(context.via);
      return write(writeTools, { operation, input, context, key });
    },
    outcome: (context: RequestContext, key: string): Promise<Outcome> => outcomeOf(writeTools, context, key),
  };
}
