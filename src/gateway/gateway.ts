import { GatewayError } from '../core/errors.ts';
import type { Clock, Digest, MaybePromise } from '../core/runtime.ts';
import { touchedBy } from '../cache/key.ts';
import type { Reading } from '../cache/reading.ts';
import { ReadThrough } from '../cache/read-through.ts';
import { deadline } from '../resilience/deadline.ts';
import { type AccountId, type Entry, EVERYTHING, type Store, type Tag } from '../store/store.ts';
import type { UpstreamAnswer } from '../upstream/answer.ts';
import type { Caller } from '../upstream/caller.ts';
import { type Call, upstreamClient, wasNeverSent } from '../upstream/client.ts';
import { type DriftReport, watchDrift } from '../upstream/drift.ts';
import { checkInput } from '../upstream/input.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import { tallied } from '../upstream/tally.ts';
import type { Transport } from '../upstream/transport.ts';

export interface GatewayOptions {
  readonly transport: Transport;
  readonly store: Store;
  readonly clock: Clock;
  readonly digest: Digest;
  /** The upstream's `{base_url}`. */
  readonly upstream: URL;
  readonly upstreamTimeoutMs: number;
  readonly maxBodyBytes: number;
  policyOf(operation: Operation): CachePolicy | undefined;
  readonly onDrift: DriftReport;
}

/** The one way to upstream data: every route, section and batch item comes through here. */
export interface Gateway {
  /** A GET, through the cache. @throws GatewayError */
  read(operation: Operation, input: OperationInput, caller: Caller): MaybePromise<Reading>;
  /** Anything else: sent once, never through the cache. @throws GatewayError */
  write(operation: Operation, input: OperationInput, caller: Caller): Promise<UpstreamAnswer>;
  /** What the cache holds of a read, however old; asks nobody. */
  peek(operation: Operation, input: OperationInput, caller: Caller): MaybePromise<Entry | undefined>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { clock, store, upstream, maxBodyBytes, transport } = options;
  // From the inside out: the bare exchange, counted, held against its schema, within its deadline.
  const client = tallied({ clock })(upstreamClient({ transport, clock, maxBodyBytes, upstream }));
  const call = deadline({ clock, timeoutMs: options.upstreamTimeoutMs })(watchDrift(options.onDrift)(client));
  const cache = new ReadThrough({ ...options, call, check: checkInput });

  return {
    read(operation, input, caller) {
      assertAccount(caller);
      return cache.read(operation, input, caller);
    },
    write: (operation, input, caller) => write({ call, store }, { operation, input, caller }),
    peek(operation, input, caller) {
      assertAccount(caller);
      return cache.peek(operation, input, caller.account);
    },
  };
}

function assertAccount(caller: Caller): asserts caller is Caller & { account: AccountId } {
  if (caller.account === undefined) throw GatewayError.of('unauthenticated');
}

interface Write {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly caller: Caller;
}

interface WriteTools {
  readonly call: Call;
  readonly store: Store;
}

/** In the background too: whoever leaves, a write that has begun is seen to its end. */
async function write(tools: WriteTools, { operation, input, caller }: Write): Promise<UpstreamAnswer> {
  checkInput(operation, input);
  caller.signal().throwIfAborted();
  const carriedOut = carryOut(tools, { operation, input, caller });
  caller.background(carriedOut.catch(() => undefined));
  return carriedOut;
}

/**
 * What the write touches is made worthless before it is sent, so that reads under way are not stored, and again when
 * it is over, so that reads from in between are not kept; whatever its outcome.
 */
async function carryOut({ call, store }: WriteTools, { operation, input, caller }: Write): Promise<UpstreamAnswer> {
  const touch = async (tags: readonly Tag[]) => {
    if (caller.account !== undefined && tags.length > 0) await store.touch(caller.account, tags);
  };
  const tags = touchedBy(operation, input);
  await touch(tags);
  try {
    return await send(call, { operation, input, caller });
  } catch (error) {
    if (error instanceof GatewayError && (error.status === 401 || error.status === 403)) await touch([EVERYTHING]);
    throw outcomeOf(error);
  } finally {
    await touch(tags);
  }
}

/** Followed to its end even if the client leaves, hence a signal of its own; the deadline still holds. */
function send(call: Call, { operation, input, caller }: Write): Promise<UpstreamAnswer> {
  const { from, tally } = caller;
  return call({ operation, input, from, tally, signal: new AbortController().signal, leftMs: caller.leftMs() });
}

/** A write that may have happened is reported as such. */
function outcomeOf(error: unknown): unknown {
  const isUnknown = error instanceof GatewayError && error.status >= 502 && !wasNeverSent(error);
  return isUnknown ? error.with({ outcome: 'unknown' }) : error;
}
