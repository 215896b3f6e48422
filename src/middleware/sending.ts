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
