import type { ErrorCode } from '../core/errors.ts';
import type { Background } from '../core/runtime.ts';

/** What an entry passes with each request, as Hono's `c.env`. */
export interface Bindings {
  /** The request target as it came over the wire, where the runtime shows it; URLs have lost their dot segments. */
  readonly target?: string;
  /** Set where the head alone is reason enough to refuse the request. */
  readonly refused?: ErrorCode;
  /** What comes behind the head, or null where none does; left out where the runtime's `Request` shows it. */
  readonly body?: ReadableStream<Uint8Array> | null;
  readonly background?: Background;
  /** Address of the client, for limits where there is no credential. */
  readonly address?: string;
}

export interface Env {
  Bindings: Bindings;
}
