import type { Cancellation } from '../core/cancellation.ts';

/** One exchange with the upstream. The URL is ours, from the operation's template; headers are an allow-list. */
export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Names, in lower case, and values in turn. */
  readonly headers: string[];
  readonly body?: string | undefined;
  /** Ends the exchange wherever it is: connecting, waiting or reading. It then rejects with the reason. */
  readonly cancellation: Cancellation;
  /** To be called right before the first byte goes out; the exchange ends with what it throws, and nothing was sent. */
  readonly beforeFirstByte?: (() => void) | undefined;
  /** Decoded bytes; a larger body counts as unreadable. */
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

/** Broken off, larger than it may be, in a coding that is unknown or broken, or not UTF-8. */
export type BodyFlaw = 'cut_short' | 'too_large' | 'coding' | 'charset';

/** Text, and whether it is known to be ASCII alone; or why there is none. The status of an answer counts all the same. */
export type Body = { readonly text: string; readonly isAscii?: boolean } | { readonly flaw: BodyFlaw };

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
