/** One exchange with the upstream. The URL is ours, from the operation's template; headers are an allow-list. */
export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the exchange wherever it is: connecting, waiting or reading. The call then rejects with its reason. */
  readonly signal: AbortSignal;
  /** Decoded bytes; a larger body counts as unreadable. */
  readonly maxBodyBytes: number;
}

/** A whole answer as text. Header names are in lower case, repeated ones joined with a comma. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null where it could not be read: cut short, too large, badly encoded, not UTF-8. */
  readonly body: string | null;
}

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
