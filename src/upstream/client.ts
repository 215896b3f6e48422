import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Tally } from './caller.ts';
import { answerOf, type UpstreamAnswer } from './answer.ts';
import type { Operation } from './operation.ts';
import { headersOf, type OperationInput, type Provenance, targetOf, type Validators } from './request.ts';
import { type RawAnswer, type Transport, TransportError, type TransportFault } from './transport.ts';

/** One call of an operation, as the layers round it see it. */
interface UpstreamCall {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly from: Provenance;
  readonly validators?: Validators | undefined;
  /** Where the call is counted. */
  readonly tally: Tally;
  /** Ends the call; it then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** Milliseconds that the request behind the call has left. */
  readonly leftMs: number;
}

/** The one shape of everything round an upstream call: a layer takes the next one and gives one back. */
export type Call = (call: UpstreamCall) => Promise<UpstreamAnswer>;

interface ClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly maxBodyBytes: number;
  /** The upstream's `{base_url}`; no client gets to see its host. */
  readonly upstream: URL;
}

/**
 * The innermost call: one request, one answer, no policy.
 * @throws GatewayError see `answerOf`; `upstream_unreachable` without a connection
 */
export function upstreamClient({ transport, clock, maxBodyBytes, upstream }: ClientOptions): Call {
  return async ({ operation, input, from, validators, signal }) => {
    const body = input.body;
    const headers = headersOf(operation, { from, hasBody: body !== undefined, validators });
    const request = { method: operation.method, path: targetOf(operation, input), headers, signal, maxBodyBytes };
    const raw = await exchange(transport, { ...request, ...(body !== undefined && { body }) });
    const conceal = concealing([from.credential, upstream.host, upstream.hostname]);
    const conditional = validators !== undefined;
    return answerOf(operation, raw, { now: clock.now(), conditional, conceal, upstream });
  };
}

const CODES = {
  refused: 'upstream_unreachable',
  broken: 'upstream_unreachable',
  malformed: 'upstream_bad_response',
  timeout: 'upstream_timeout',
} as const satisfies Record<TransportFault, string>;

async function exchange(transport: Transport, request: Parameters<Transport>[0]): Promise<RawAnswer> {
  try {
    return await transport(request);
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    throw GatewayError.of(CODES[error.fault], { cause: error });
  }
}

/** Short words are taken out only where they stand alone: a credential `a` is in every text. */
const LONG_WORD = 8;

function concealing(words: readonly (string | undefined)[]): (text: string) => string {
  let patterns: readonly RegExp[] | undefined; // hardly any answer needs them
  return (text) => {
    patterns ??= words.filter((word) => word !== undefined).map(patternOf);
    return patterns.reduce((rest, pattern) => rest.replaceAll(pattern, '…'), text);
  };
}

function patternOf(word: string): RegExp {
  const literal = word.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
  return new RegExp(word.length >= LONG_WORD ? literal : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, 'g');
}

/** Whether a failed call proves that the upstream never saw it. */
export function wasNeverSent(error: unknown): boolean {
  if (!(error instanceof GatewayError) || !(error.cause instanceof TransportError)) return false;
  return error.cause.fault === 'refused' || error.cause.fault === 'timeout';
}
