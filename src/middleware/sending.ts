import type { Owner } from '../store/store.ts';

/** What is sent, and what decides whether it is compressed. */
export interface Sent {
  readonly status: number;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** What the body is made of, and may be kept with once it is compressed. */
  readonly copy?: object;
  /** A secret is in it: see `mayBeCompressed`. */
  readonly isSecret?: boolean;
}

interface Asked {
  readonly route: { readonly mayBeCompressed?: boolean };
  header(name: string): string | undefined;
}

/**
 * Gives the body compressed, and says so in `headers`; undefined where it is to be sent as it is.
 * @param isFirst whether no middleware of a host, which may read the body, came before
 */
export type Compress = (
  request: Asked,
  answer: Sent,
  headers: Record<string, string>,
  isFirst: boolean,
) => Uint8Array<ArrayBuffer> | undefined;

/** What clients have been sent and have not taken yet. */
export interface Backlog {
  /** Notes whose answer it is. */
  note(env: object, owner: Owner): void;
  /** Whether so much of the owner's is unsent that no further answer to a read may be sent. */
  isFull(owner: Owner): boolean;
  /** The same stream, whose bytes count until they are taken. */
  metered(env: object, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>;
}
