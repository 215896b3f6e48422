import { type ErrorCode, type Fault, GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { answerOf } from './answer.ts';
import type { Exchange } from './call.ts';
import { headersOf, targetOf } from './request.ts';
import { type RawAnswer, type Transport, TransportError, type TransportFault } from './transport.ts';

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
    const { operation, input, beforeFirstByte } = call;
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
    return answerOf(call, raw, { now: clock.now(), upstream });
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
