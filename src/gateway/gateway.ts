import { cacheKeyOf } from '../cache/key.ts';
import type { Reading } from '../cache/reading.ts';
import { type Reader, ReadThrough } from '../cache/read-through.ts';
import type { Digest } from '../core/runtime.ts';
import { addressOwner, isAddress } from '../store/owner.ts';
import type { AccountId, SnapshotRequest, Entry, Holder, LocalStore, Store } from '../store/store.ts';
import { checkInput } from '../upstream/input.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { CopyOf, OperationInput, Read } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import type { Writer, Written } from './idempotency.ts';
import { rateLimit } from './rate-limit.ts';
import { upstreamCall, type UpstreamCallOptions } from './upstream-call.ts';
import { write } from './write.ts';

export interface GatewayOptions extends UpstreamCallOptions {
  readonly store: Store;
  readonly digest: Digest;
  /** One client request, with all attempts and legs. */
  readonly requestTimeoutMs: number;
  /** Requests of one account; 0 turns all limits off. */
  readonly rateLimitPerMinute: number;
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
}

/** The one way to upstream data: every route, section and batch item comes through here. */
export interface Gateway {
  /** Answers without waiting. Absent with a shared store, and if hashing is asynchronous. */
  readonly hits: Hits | undefined;
  /**
   * Counts the request and asks the store for the keys of what it will read.
   * @throws GatewayError `unauthenticated`, `rate_limited`
   */
  reader(context: RequestContext, reads?: (copyOf: CopyOf) => readonly Read[]): Promise<Reader>;
  /** A GET, through the cache. @throws GatewayError */
  read(operation: Operation, input: OperationInput, reader: Reader): Promise<Reading>;
  /** The cached copy of a read, however old, without asking the upstream. */
  peek(read: Read, reader: Reader): Promise<Entry | undefined>;
  /** Anything else: counted, then sent once, never through the cache. @throws GatewayError, also what `input` throws */
  write(operation: Operation, input: () => Promise<OperationInput>, context: RequestContext): Promise<Written>;
  /** Whether the upstream has accepted the reader's credential, as far as this instance has seen. */
  isAccepted(reader: Reader): boolean;
}

/** A holder that is an account. */
interface AccountHolder extends Holder {
  readonly account: AccountId;
}

/** Answers from fresh copies, which is tried first for every read. */
export interface Hits {
  /**
   * Who reads; undefined if the request does not want cached copies.
   * @throws GatewayError `unauthenticated`
   */
  holderOf(context: RequestContext): AccountHolder | undefined;
  fresh(holder: AccountHolder, read: Read): Reading | undefined;
  /** Whether answers of an operation are ever kept. */
  readonly has: (operation: Operation) => boolean;
  /** Hash of a text, for an ETag. */
  readonly hash: (text: string) => string;
  /**
   * Counts a request that so many fresh copies answer.
   * @throws GatewayError `rate_limited`
   */
  count(context: RequestContext, holder: AccountHolder, copies: number): void;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { store, clock, digest, accepted, policyOf } = options;
  const { call, isCircuitOpen, assertOpen } = upstreamCall(options);
  const cache = new ReadThrough({
    ...options,
    call,
    isCircuitOpen,
    timeoutMs: options.requestTimeoutMs,
    check: checkInput,
  });
  const limit = rateLimit(options);
  const writeTools = { ...options, call, assertOpen, limit };

  const accountOf = async (context: RequestContext) => (context.account ??= await digest.account(context.credential));

  const writerOf = async (context: RequestContext, { credential }: Operation): Promise<Writer> => {
    const account = credential === 'none' ? undefined : await accountOf(context);
    // Credentials contain no space, so the hash of an address never equals that of a credential.
    const principal = account ?? (await digest.account(addressOwner(context.address)));
    const quota = account === undefined ? limit.address : limit.account;
    return { context, account, principal, owner: accepted.ownerOf(account, context), quota };
  };

  return {
    hits: store.local && digest.now && hitsOf(options, { cache, limit, local: store.local, hash: digest.now }),
    async reader(context, reads = () => []) {
      const account = await accountOf(context);
      const owner = accepted.ownerOf(account, context);
      const keyOf = ({ operation, input }: Read) =>
        cacheKeyOf(account, operation, { input, policy: policyOf(operation) });
      const keys: SnapshotRequest['keys'] = (copyOf) => reads((read) => copyOf(keyOf(read))?.text).map(keyOf);
      const { background, wants } = context;
      const window = limit.account?.window;
      const now = clock.now();
      const request = { principal: account, owner, now, window, keys, fetches: wants === 'any', background };
      const snapshot = await store.snapshot(request);
      context.snapshot = snapshot;
      limit.counted(context, limit.account, snapshot.use);
      return { context, account, owner, snapshot, cancellation: context.cancellation };
    },
    read: (operation, input, reader) => cache.read(operation, input, reader),
    peek: (read, reader) => cache.peek(read, reader),
    write: async (operation, input, context) =>
      write(writeTools, { operation, input, writer: await writerOf(context, operation) }),
    isAccepted: ({ owner }) => !isAddress(owner),
  };
}

interface HitTools {
  readonly cache: ReadThrough;
  readonly limit: ReturnType<typeof rateLimit>;
  readonly local: LocalStore;
  readonly hash: NonNullable<Digest['now']>;
}

function hitsOf({ clock, metrics, policyOf }: GatewayOptions, { cache, limit, local, hash }: HitTools): Hits {
  return {
    holderOf(context) {
      if (context.wants !== 'any') return undefined;
      const account = (context.account ??= hash.account(context.credential));
      return { account, principal: account, owner: account }; // the upstream has accepted whoever has a copy
    },
    fresh: (holder, read) => cache.fresh(read, local, holder),
    has: (operation) => policyOf(operation) !== undefined,
    hash: (text) => hash.body(text),
    count(context, holder, copies) {
      const quota = limit.account;
      if (quota) limit.counted(context, quota, local.count(holder, quota.window, clock.now()));
      for (let copy = 0; copy < copies; copy++) metrics.readDone('hit');
    },
  };
}
