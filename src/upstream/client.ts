import { type ErrorCode, type Fault, GatewayError } from '../core/errors.ts';
import type { Background, Clock } from '../core/runtime.ts';
import type { Owner } from '../store/owner.ts';
import type { AccountId } from '../store/store.ts';
import type { Tally } from './caller.ts';
import { answerOf, type UpstreamAnswer } from './answer.ts';
import type { Operation } from './operation.ts';
import { headersOf, type OperationInput, type Provenance, targetOf, type Validators } from './request.ts';
import { type RawAnswer, type Transport, TransportError, type TransportFault } from './transport.ts';

/** One call of an operation. */
export interface UpstreamCall {
  /** Whose call it is; absent for the social calls. */
  readonly account: AccountId | undefined;
  /** Whose share of what is bounded it takes. */
  readonly owner: Owner;
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly from: Provenance;
  readonly validators?: Validators | undefined;
  /** Comes when all gates have let the call through, before the first byte goes out; what it throws ends the call. */
  readonly beforeSend?: () => void;
  /** Comes right before the first byte, after any waiting for a connection; with what it throws nothing was sent. */
  readonly beforeFirstByte?: (() => void) | undefined;
  readonly background: Background;
  /** Where the call is counted. */
  readonly tally: Tally;
  /** Ends the call; it then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** When the request behind the call has to be over, in milliseconds since the epoch. */
  readonly endsAt: number;
}

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
  return async ({ operation, input, from, validators, signal, beforeSend, beforeFirstByte }) => {
    beforeSend?.();
    const body = input.body;
    const headers = headersOf(operation, { from, hasBody: body !== undefined, validators });
    const request = { method: operation.method, path: targetOf(operation, input), headers, signal, maxBodyBytes };
    const raw = await exchange(transport, {
      ...request,
      ...(body !== undefined && { body }),
      ...(beforeFirstByte && { beforeFirstByte }),
    });
    const conceal = concealing(from.credential, upstream);
    const conditional = validators !== undefined;
    return answerOf(operation, raw, { now: clock.now(), conditional, conceal, upstream });
  };
}

const FAULTS = {
  refused: ['upstream_unreachable', 'refused'],
  broken: ['upstream_unreachable', 'broken'],
  malformed: ['upstream_bad_response', 'failed'],
  timeout: ['upstream_timeout', 'unconnected'],
} as const satisfies Record<TransportFault, readonly [ErrorCode, Fault]>;

async function exchange(transport: Transport, request: Parameters<Transport>[0]): Promise<RawAnswer> {
  try {
    return await transport(request);
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    const [code, fault] = FAULTS[error.fault];
    throw GatewayError.of(code, { fault, cause: error });
  }
}

/** Short words are taken out only where they stand alone: a credential `a` is in every text. */
const LONG_WORD = 8;

/** Takes out the credential as it is written, and the host in any case of letters. */
function concealing(credential: string | undefined, { host, hostname }: URL): (text: string) => string {
  let patterns: readonly RegExp[] | undefined; // hardly any answer needs them
  return (text) => {
    patterns ??= [
      ...(credential === undefined ? [] : [patternOf(credential, 'g')]),
      ...[host, hostname.replace(/\.$/, '')].map((word) => patternOf(word, 'gi')),
    ];
    return patterns.reduce((rest, pattern) => rest.replaceAll(pattern, '…'), text);
  };
}

function patternOf(word: string, flags: string): RegExp {
  const literal = word.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
  return new RegExp(word.length >= LONG_WORD ? literal : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, flags);
}
