import { cacheKeyOf } from '../cache/key.ts';
import type { Reading } from '../cache/reading.ts';
import { type Reader, ReadThrough } from '../cache/read-through.ts';
import type { Config } from '../config.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Digest } from '../core/runtime.ts';
import { acceptedAccounts } from '../resilience/gates.ts';
import { addressOwner } from '../store/owner.ts';
import {
  type AccountId,
  type Entry,
  type Holder,
  isSessionOver,
  type LocalStore,
  type SnapshotRequest,
  type Store,
} from '../store/store.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { CopyOf, OperationInput, Read } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import type { Transport } from '../upstream/transport.ts';
import type { Writer, Written } from './idempotency.ts';
import { type RateLimit, rateLimit } from './rate-limit.ts';
import { accountSessions, ending, sessionOver } from './sessions.ts';
import { upstreamCall } from './upstream-call.ts';
import { write } from './write.ts';

/** What a runtime gives for reads and writes. */
export interface GatewayDeps {
  readonly config: Config;
  /** The upstream's `{base_url}`: configured, or the sandbox's. */
  readonly upstream: URL;
  readonly transport: Transport;
  readonly store: Store;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Upstream calls under way at once; undefined if the platform limits them. */
  readonly slots: number | undefined;
}

export type Gateway = ReturnType<typeof createGateway>;

/**
 * The one way to upstream data: every route, section and batch item comes through here.
 * @param seen collects error codes of the upstream's own
 */
export function createGateway(deps: GatewayDeps, seen: Set<string>) {
  const { config, store, digest } = deps;
  const { policyOf, requestTimeoutMs } = config;
  const accepted = acceptedAccounts(store);
  const { call, isCircuitOpen, assertOpen } = upstreamCall(deps, accepted, seen);
  const cache = new ReadThrough({
    ...deps,
    call,
    isCircuitOpen,
    timeoutMs: requestTimeoutMs,
    check: checkInput,
    policyOf,
  });
  const limit = rateLimit(deps, config.rateLimitPerMinute);
  const ownerOf = ({ account, context }: Writer) => accepted.ownerOf(account, context);
  const writeTools = { ...deps, call, assertOpen, limit, ownerOf };

  const readerOf = readers(deps, accepted);
  const writerOf = async (context: RequestContext, { credential }: Operation): Promise<Writer> => {
    const account = credential === 'none' ? undefined : (context.account ??= await digest.account(context.credential));
    // Credentials contain no space, so the hash of an address never equals that of a credential.
    const principal = account ?? (await digest.account(addressOwner(context.address)));
    const quota = account === undefined ? limit.address : limit.account;
    const owner = (context.owner = accepted.ownerOf(account, context));
    return { context, account, principal, owner, quota };
  };

  return {
    /** Answers without waiting. Absent with a shared store, and if hashing is asynchronous. */
    hits: store.local && digest.now && hitsOf(deps, { cache, limit, local: store.local, hash: digest.now }),
    /**
     * Counts the request and asks the store for the keys of what it will read.
     * @throws GatewayError `unauthenticated`, `rate_limited`
     */
    async reader(context: RequestContext, reads: (copyOf: CopyOf) => readonly Read[] = () => []): Promise<Reader> {
      const { session } = context;
      const reader = await readerOf(context, reads, { window: limit.account?.window, session });
      limit.counted(context, limit.account, reader.snapshot.use);
      if (session && isSessionOver(session, reader.snapshot.session)) throw sessionOver();
      return reader;
    },
    sessions: accountSessions(deps, { accepted, limit, readerOf }),
    /** A GET, through the cache. @throws GatewayError */
    read: (read: Read, reader: Reader): Promise<Reading> =>
      reader.context.session ? ending(store, reader, cache.read(read, reader)) : cache.read(read, reader),
    /** The cached copy of a read, however old, without asking the upstream. */
    peek: (read: Read, reader: Reader): Promise<Entry | undefined> => cache.peek(read, reader),
    /** Anything else: counted, then sent once, never through the cache. @throws GatewayError, also what `input` throws */
    async write(operation: Operation, input: () => Promise<OperationInput>, context: RequestContext): Promise<Written> {
      return write(writeTools, { operation, input, writer: await writerOf(context, operation) });
    },
  };
}

export type ReaderOf = ReturnType<typeof readers>;

/** Asks the store for what a request will read, for its window, if any, and for its session. */
function readers({ config, store, clock, digest }: GatewayDeps, accepted: ReturnType<typeof acceptedAccounts>) {
  return async (
    context: RequestContext,
    reads: (copyOf: CopyOf) => readonly Read[],
    { window, session }: Pick<SnapshotRequest, 'window' | 'session'>,
  ): Promise<Reader> => {
    const account = (context.account ??= await digest.account(context.credential));
    const owner = (context.owner = accepted.ownerOf(account, context));
    const keyOf = (read: Read) => cacheKeyOf(account, read, config.policyOf(read.operation));
    const snapshot = await store.snapshot({
      principal: account,
      owner,
      now: clock.now(),
      window,
      keys: (copyOf) => reads((read) => copyOf(keyOf(read))?.text).map(keyOf),
      fetches: context.wants === 'any',
      session,
      waitUntil: context.waitUntil,
    });
    context.snapshot = snapshot;
    return { context, account, owner, snapshot, signal: context.signal };
  };
}

/** A holder that is an account. */
interface AccountHolder extends Holder {
  readonly account: AccountId;
}

interface HitTools {
  readonly cache: ReadThrough;
  readonly limit: RateLimit;
  readonly local: LocalStore;
  readonly hash: NonNullable<Digest['now']>;
}

export type Hits = ReturnType<typeof hitsOf>;

/** Answers from fresh copies, which is tried first for every read. */
function hitsOf({ clock, metrics, config }: GatewayDeps, { cache, limit, local, hash }: HitTools) {
  return {
    /**
     * Who reads; undefined if the request does not want cached copies.
     * @throws GatewayError `unauthenticated`
     */
    holderOf(context: RequestContext): AccountHolder | undefined {
      if (context.wants !== 'any') return undefined;
      const account = (context.account ??= hash.account(context.credential));
      context.owner = account;
      return { account, principal: account, owner: account }; // the upstream has accepted whoever has a copy
    },
    fresh: (holder: AccountHolder, read: Read): Reading | undefined => cache.fresh(read, local, holder.account),
    /** Whether answers of an operation are ever kept. */
    has: (operation: Operation) => config.policyOf(operation) !== undefined,
    /** Hash of a text, for an ETag. */
    hash: (text: string) => hash.body(text),
    /**
     * Counts a request that so many fresh copies answer.
     * @throws GatewayError `rate_limited`
     */
    count(context: RequestContext, holder: AccountHolder, copies: number): void {
      const quota = limit.account;
      if (quota) limit.counted(context, quota, local.count(holder, quota.window, clock.now()));
      for (let copy = 0; copy < copies; copy++) metrics.readDone('hit');
    },
  };
}
