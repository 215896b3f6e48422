import { type ErrorCode, type Fault, GatewayError, type Reason } from '../core/errors.ts';

/** One exchange with the upstream. The URL is ours, from the operation's template; headers are an allow-list. */
export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Alternating names, in lower case, and values. */
  readonly headers: string[];
  readonly body?: string | undefined;
  /** The transport calls it right before it sends the first byte. If it throws, nothing is sent and the exchange fails. */
  readonly beforeFirstByte?: (() => void) | undefined;
  /** Most bytes of the decoded body. A larger body counts as unreadable. */
  readonly maxBodyBytes: number;
}

/** A whole answer as text. Header names are in lower case. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

/** The value of a header; repeated ones are joined with a comma. */
export function headerOf({ headers }: Pick<RawAnswer, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** Why a body is unreadable: cut short, larger than `maxBodyBytes`, in an unknown or broken coding, or not UTF-8. */
export type BodyFlaw = 'cut_short' | 'too_large' | 'coding' | 'charset';

/** The text, or why it is unreadable. The status is valid either way. */
export type Body = { readonly text: string } | { readonly flaw: BodyFlaw };

/** An exchange that is under way. */
export interface Exchange {
  readonly answer: Promise<RawAnswer>;
  /** Ends the exchange at any time: while connecting, waiting or reading. `answer` then rejects with the reason. */
  abort(reason: unknown): void;
}

/** Undici's dispatcher on Node, `fetch` on Workers, the sandbox in process. Never follows a redirect, never retries. */
export type Transport = (request: UpstreamRequest) => Exchange;

const CODES = {
  no_connection: 'upstream_unreachable',
  connect_timeout: 'upstream_timeout',
  broken: 'upstream_unreachable',
  malformed: 'upstream_bad_response',
} as const satisfies Partial<Record<Fault, ErrorCode>>;

/** The error of an exchange that got no answer and was not aborted. */
export const noAnswer = (fault: keyof typeof CODES, reason: Reason, cause?: unknown): GatewayError =>
  GatewayError.of(CODES[fault], { fault, reason, cause });
