import { type ErrorCode, type Fault, GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Owner } from '../store/owner.ts';
import type { AccountId } from '../store/store.ts';
import { answerOf, type UpstreamAnswer } from './answer.ts';
import type { Operation } from './operation.ts';
import { headersOf, type OperationInput, targetOf, type Validators } from './request.ts';
import type { RequestContext } from './request-context.ts';
import { type RawAnswer, type Transport, TransportError, type TransportFault } from './transport.ts';

/** One call of an operation. */
export interface UpstreamCall {
  /** The request that it was begun for. Other requests may wait for it too. */
  readonly context: RequestContext;
  /** Whose call it is; absent for the social calls. */
  readonly account: AccountId | undefined;
  /** Whose share of the bounded resources it takes. */
  readonly owner: Owner;
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly validators?: Validators | undefined;
  /** Called when all gates have let the call through, before it waits for a connection; what it throws ends the call. */
  readonly beforeSend?: () => void;
  /** Called right before the first byte is sent; what it throws ends the call with nothing sent. */
  readonly beforeFirstByte?: (() => void) | undefined;
  /** Ends the call with all its attempts; it then rejects with the reason. */
  readonly signal: AbortSignal;
  /** When it has to be over, in milliseconds of the process's clock. */
  readonly endsAt: number;
}

export type Call = (call: UpstreamCall) => Promise<UpstreamAnswer>;

/** One attempt at a call; `signal` ends it. */
export type Exchange = (call: UpstreamCall, signal: AbortSignal) => Promise<UpstreamAnswer>;

interface ClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly maxBodyBytes: number;
  /** The upstream's `{base_url}`. Clients never see its host. */
  readonly upstream: URL;
}

/**
 * The innermost call: one request, one answer, no policy.
 * @throws GatewayError see `answerOf`; `upstream_unreachable` without a connection
 */
export function upstreamClient({ transport, clock, maxBodyBytes, upstream }: ClientOptions): Exchange {
  return async (call, signal) => {
    const { operation, input, context, beforeFirstByte } = call;
    call.beforeSend?.();
    let raw: RawAnswer;
    try {
      raw = await transport({
        method: operation.method,
        path: targetOf(operation, input),
        headers: headersOf(call),
        body: input.body,
        signal,
        maxBodyBytes,
        beforeFirstByte,
      });
    } catch (error) {
      throw error instanceof TransportError ? unreached(error) : error;
    }
    const credential = operation.credential === 'none' ? undefined : context.credential;
    const isConditional = call.validators !== undefined;
    return answerOf(operation, raw, { clock, isConditional, credential, upstream });
  };
}

const FAULTS = {
  refused: ['upstream_unreachable', 'refused'],
  broken: ['upstream_unreachable', 'broken'],
  malformed: ['upstream_bad_response', 'failed'],
  timeout: ['upstream_timeout', 'unconnected'],
} as const satisfies Record<TransportFault, readonly [ErrorCode, Fault]>;

function unreached(cause: TransportError): GatewayError {
  const [code, fault] = FAULTS[cause.fault];
  return GatewayError.of(code, { fault, cause });
}
