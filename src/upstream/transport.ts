/** One exchange with the upstream. The URL is ours, from the operation's template; headers are an allow-list. */
export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Alternating names, in lower case, and values. */
  readonly headers: string[];
  readonly body?: string | undefined;
  /** Ends the exchange at any time, while connecting, waiting or reading. It then rejects with the reason. */
  readonly signal: AbortSignal;
  /** To be called right before the first byte is sent; if it throws, nothing is sent and the exchange fails. */
  readonly beforeFirstByte?: (() => void) | undefined;
  /** Of the decoded body; a larger one counts as unreadable. */
  readonly maxBodyBytes: number;
}

/** A whole answer as text. Header names are in lower case. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

/** Repeated ones are joined with a comma. */
export function headerOf({ headers }: Pick<RawAnswer, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** Cut short, larger than `maxBodyBytes`, in an unknown or broken coding, or not UTF-8. */
export type BodyFlaw = 'cut_short' | 'too_large' | 'coding' | 'charset';

/** The text, or why it is unreadable. The status is valid either way. */
export type Body = { readonly text: string } | { readonly flaw: BodyFlaw };

/** Undici's dispatcher on Node, `fetch` on Workers, the sandbox in process. Never follows a redirect, never retries. */
export type Transport = (request: UpstreamRequest) => Promise<RawAnswer>;

/**
 * `refused`: no connection, so nothing was sent. `broken`: it went away before an answer.
 * `malformed`: what came is not HTTP.
 * `timeout`: no connection in time.
 */
export type TransportFault = 'refused' | 'broken' | 'malformed' | 'timeout';

export class TransportError extends Error {
  readonly fault: TransportFault;

  constructor(fault: TransportFault, cause?: unknown) {
    super(fault, { cause });
    this.name = 'TransportError';
    this.fault = fault;
  }
}
