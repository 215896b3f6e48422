import { GatewayError } from '../core/errors.ts';
import type { Digest, MaybePromise } from '../core/runtime.ts';
import type { Reading } from '../cache/reading.ts';
import { ReadThrough } from '../cache/read-through.ts';
import type { AccountId, Entry, Store } from '../store/store.ts';
import type { Caller } from '../upstream/caller.ts';
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
  read(operation: Operation, input: OperationInput, caller: Caller): MaybePromise<Reading>;
  /** Anything else: sent once, never through the cache. @throws GatewayError */
  write(operation: Operation, input: OperationInput, caller: Caller): Promise<Written>;
  /** What the cache holds of a read, however old; asks nobody. */
  peek(operation: Operation, input: OperationInput, caller: Caller): MaybePromise<Entry | undefined>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { answers, turns, limits } = options.store;
  const { call, isOut } = upstreamCall({ ...options, limits });
  const cache = new ReadThrough({
    ...options,
    answers,
    turns,
    call,
    isOut,
    timeoutMs: options.requestTimeoutMs,
    check: checkInput,
  });
  const writeTools = { ...options, call };

  return {
    read(operation, input, caller) {
      assertAccount(caller);
      return cache.read(operation, input, caller);
    },
    write: (operation, input, caller) => write(writeTools, { operation, input, caller }),
    peek(operation, input, caller) {
      assertAccount(caller);
      return cache.peek(operation, input, caller);
    },
  };
}

function assertAccount(caller: Caller): asserts caller is Caller & { account: AccountId } {
  if (caller.account === undefined) throw GatewayError.of('unauthenticated');
}
