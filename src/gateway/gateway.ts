import type { Reading } from '../cache/reading.ts';
import type { Reader } from '../cache/reader.ts';
import { ReadThrough } from '../cache/read-through.ts';
import { andThen, type Soon } from '../core/soon.ts';
import { acceptedAccounts } from '../resilience/gates.ts';
import { addressOwner, isSessionOver } from '../store/store.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { OperationInput, Read } from '../upstream/call.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import type { GatewayDeps } from './deps.ts';
import type { Writer, Written } from './idempotency.ts';
import { rateLimit } from './rate-limit.ts';
import { readers, type ReadsOf } from './reader.ts';
import { accountSessions, ending, sessionOver } from './sessions.ts';
import { upstreamCall } from './upstream-call.ts';
import { write } from './write.ts';

export type Gateway = ReturnType<typeof createGateway>;

/** The one way to upstream data: every route, section and batch item comes through here. */
export function createGateway(deps: GatewayDeps) {
  const { config, store, digest } = deps;
  const accepted = acceptedAccounts(store);
  const { call, isCircuitOpen, assertAllowed, upstreamCodes } = upstreamCall(deps, accepted.gate);
  const { policyOf, requestTimeoutMs: timeoutMs } = config;
  const cache = new ReadThrough({ ...deps, call, isCircuitOpen, timeoutMs, check: checkInput, policyOf });
  const limit = rateLimit(deps, config.rateLimitPerMinute);
  const readerOf = readers(deps, accepted);
  const writeTools = { ...deps, call, assertAllowed, limit, accepted };
  const writerOf = async (context: RequestContext, { credential }: Operation): Promise<Writer> => {
    const account = credential === 'none' ? undefined : (context.account ??= await digest.account(context.credential));
    // Credentials contain no space, so the hash of an address never equals that of a credential.
    const principal = account ?? (await digest.account(addressOwner(context.address)));
    const quota = account === undefined ? limit.address : limit.account;
    const owner = (context.owner = accepted.ownerOf(account, context));
    return { context, account, principal, owner, quota };
  };

  return {
    /**
     * Counts the request and asks the store for the keys of what it will read; without waiting where state and hashes
     * are this process's.
     * @throws GatewayError `unauthenticated`, `rate_limited`
     */
    reader(context: RequestContext, reads: ReadsOf = () => []): Soon<Reader> {
      const { session } = context;
      return andThen(readerOf(context, reads, { window: limit.account?.window, session }), (reader) => {
        limit.apply(context, limit.account, reader.snapshot.use);
        if (session && isSessionOver(session, reader.snapshot.session)) throw sessionOver();
        return reader;
      });
    },
    sessions: accountSessions(deps, { accepted, limit, readerOf }),
    /** A GET that no fresh copy answers, through the cache. @throws GatewayError */
    read: (read: Read, reader: Reader): Promise<Reading> =>
      reader.context.session ? ending(store, reader, cache.read(read, reader)) : cache.read(read, reader),
    /** Anything else: counted, then sent once, never through the cache. @throws GatewayError, also what `input` throws */
    async write(operation: Operation, input: () => Promise<OperationInput>, context: RequestContext): Promise<Written> {
      return write(writeTools, { operation, input, writer: await writerOf(context, operation) });
    },
    /** Error codes of the upstream's own that it has used. */
    upstreamCodes,
  };
}
