import type { ErrorCode } from './errors.ts';
import type { WaitUntil } from './runtime.ts';

/** A request as the runtime hands it over: plain values, nothing of Hono or of a runtime's own. */
export interface Inbound {
  readonly method: string;
  /** Path and query as the client wrote them, without the question mark. A URL has lost its dot segments. */
  readonly path: string;
  readonly query: string;
  /** `name` in lower case. Repeated headers are joined with a comma and a space. */
  header(name: string): string | undefined;
  /** Null if there is none. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Scheme and host that the client used. */
  readonly origin: string;
  /** The client's, for limits on requests without a credential. */
  readonly address: string;
  readonly waitUntil: WaitUntil;
  /** Set if the request is to be refused for its head alone. */
  readonly refused?: ErrorCode | undefined;
  /**
   * Whether so much of the owner's earlier answers is unsent that this one may not be sent too; without an owner, of the
   * address's. Absent where the platform sends answers.
   */
  isBacklogged?(owner: string | undefined): boolean;
  /** Runs `leave` if the client goes away before it has its whole answer. */
  onLeave(leave: () => void): void;
}

/** An answer as the runtime sends it. `headers` are alternating names and values. */
export interface Outbound {
  readonly status: number;
  readonly headers: string[];
  /** Whether a text body is known to be all ASCII. */
  readonly isAscii?: boolean | undefined;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** Whose share of what is unsent it takes. Absent: the address's. */
  readonly owner?: string | undefined;
}
