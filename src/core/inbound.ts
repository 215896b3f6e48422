import type { ErrorCode } from './errors.ts';
import type { Background } from './runtime.ts';

/** A request as the runtime hands it over: plain values, nothing of Hono or of a runtime's own. */
export interface Inbound {
  readonly method: string;
  /** Path and query as the client wrote them, without the question mark. A URL has lost its dot segments. */
  readonly path: string;
  readonly query: string;
  /** By its name in lower case. Repeated ones come joined with a comma and a space. */
  header(name: string): string | undefined;
  /** Null where none comes. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Scheme and host that the client has asked. */
  readonly origin: string;
  /** Of the client, for limits where there is no credential. */
  readonly address: string;
  readonly background: Background;
  /** Set where the head alone is reason enough to refuse the request. */
  readonly refused?: ErrorCode | undefined;
  /** Runs `leave` if the client goes away before it has its whole answer. */
  onLeave(leave: () => void): void;
}

/** An answer as the runtime sends it. `headers` are names and values in turn. */
export interface Outbound {
  readonly status: number;
  readonly headers: string[];
  /** Of a text: known to be ASCII alone. */
  readonly isAscii?: boolean | undefined;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
}
