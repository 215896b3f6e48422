import type { Digest, MaybePromise } from '../core/runtime.ts';
import type { Reading } from '../cache/reading.ts';
import { ReadThrough } from '../cache/read-through.ts';
import type { Entry, Store } from '../store/store.ts';
import type { Caller, Reader } from '../upstream/caller.ts';
import { checkInput } from '../upstream/input.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import type { Written } from './idempotency.ts';
import { upstreamCall, type UpstreamCallOptions } from './upstream-call.ts';
import { write } from './write.ts';

export interface GatewayOptions extends UpstreamCallOptions {
  readonly store: Store;
  readonly digest: Digest;
  /** One client request, with all attempts and legs. */
  readonly requestTimeoutMs: number;
  policyOf(operation: Operation): CachePolicy | undefined;
}

/** The one way to upstream data: every route, section and batch item comes through here. */
export interface Gateway {
  /** A GET, through the cache. @throws GatewayError */
  read(operation: Operation, input: OperationInput, caller: Reader): MaybePromise<Reading>;
  /** Anything else: counted, then sent once, never through the cache. @throws GatewayError, also what `input` throws */
  write(operation: Operation, input: () => Promise<OperationInput>, caller: Caller): Promise<Written>;
  /** What the cache holds of a read, however old; asks nobody. */
  peek(operation: Operation, input: OperationInput, caller: Reader): MaybePromise<Entry | undefined>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { call, isOut, assertOpen } = upstreamCall(options);
  const cache = new ReadThrough({ ...options, call, isOut, timeoutMs: options.requestTimeoutMs, check: checkInput });
  const writeTools = { ...options, call, assertOpen };
  return {
    read: (operation, input, caller) => cache.read(operation, input, caller),
    write: (operation, input, caller) => write(writeTools, { operation, input, caller }),
    peek: (operation, input, caller) => cache.peek(operation, input, caller),
  };
}
