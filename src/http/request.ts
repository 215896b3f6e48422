import type { Context, Next } from 'hono';
import { basePath } from 'hono/route';
import { ClientRequest, type Head, type RouteFacts } from '../core/request.ts';
import type { WaitUntil } from '../core/runtime.ts';
import type { GatewayDeps } from '../gateway/deps.ts';

/** The Hono environment of the app. Only a runtime's own code reads what the runtime puts into `c.env`. */
export interface Env {
  Bindings: object;
  Variables: { porticoRequest: HonoRequest };
}

/** Status and body of an answer, and what decides whether it is compressed. */
export interface Payload {
  readonly status: number;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** The object that the body is made of. A compressed body is kept as long as this object lives. */
  readonly copy?: object;
  /** A secret is in it: see `mayBeCompressed`. */
  readonly isSecret?: boolean;
}

/**
 * Returns the compressed body and sets its headers in `headers`; undefined where the body is sent as it is.
 * @param isFirst whether no middleware of a host came before, which may read the body
 */
export type Compress = (
  request: ClientRequest,
  answer: Payload,
  headers: Record<string, string>,
  isFirst: boolean,
) => Uint8Array<ArrayBuffer> | undefined;

/** What a runtime gives, and what the app makes of it for all of its routes. */
export interface HttpDeps extends GatewayDeps {
  /** Whether the process ends, and cuts off the connections that are left. */
  readonly isCuttingOff?: (() => boolean) | undefined;
  /** For work that outlives its request, where no execution context comes with it. Absent where one always does. */
  readonly waitUntil?: WaitUntil | undefined;
  /**
   * Runs it when the client leaves. False, or absent, where only the signal of the request tells. Node's adapter would have to
   * make that signal first.
   */
  readonly onLeft?: ((env: object, raw: Request, run: () => void) => boolean) | undefined;
  /** Absent where the platform compresses. */
  readonly compress?: Compress | undefined;
  /** hono/body-limit. Absent where no body is read. */
  readonly limitBody?: ((c: Context<Env>, next: Next) => Promise<unknown>) | undefined;
  readonly cors?: { add(headers: Record<string, string>, request: HonoRequest): void } | undefined;
}

/**
 * What a parameter of a row's or an overview's path is called in the route: if a host mounts the app under a path with a
 * parameter of the same name, Hono would give the host's.
 */
export const routeParam = (name: string): string => `portico_${name}`;

/** A request that came through Hono; without `hono` one that a server refuses before the app sees it. */
export class HonoRequest extends ClientRequest {
  declare readonly tools: HttpDeps;
  /** The body is a stream, which calls `end` when it is over. */
  isStream = false;
  /** Another request came in it, which is logged and counted in its place. */
  isEnvelope = false;
  /** Runs when the request is over. */
  onEnd: (() => void) | undefined;
  readonly hono: Context<Env> | undefined;
  #mounted: string | undefined;

  constructor(head: Head, route: RouteFacts, deps: HttpDeps, hono?: Context<Env>) {
    super(head, route, deps, hono?.env ?? {});
    this.hono = hono;
  }

  /** The value of a parameter of the path. `name`: as `routeParam` makes it. */
  param(name: string): string {
    return this.hono?.req.param(name) ?? '';
  }

  /** Cut from the request's path, since Hono's `basePath` is decoded. */
  get mounted(): string {
    if (this.#mounted === undefined) {
      const depth = this.hono ? basePath(this.hono).replace(/\/$/, '').split('/').length : 1;
      this.#mounted = this.path.split('/').slice(0, depth).join('/');
    }
    return this.#mounted;
  }

  get hasLeft(): boolean {
    return this.hono?.req.raw.signal.aborted === true;
  }

  onLeft(run: () => void): (() => void) | undefined {
    if (!this.hono || this.tools.onLeft?.(this.hono.env, this.hono.req.raw, run)) return undefined;
    const { signal } = this.hono.req.raw;
    if (signal.aborted) run();
    else signal.addEventListener('abort', run, { once: true });
    return () => signal.removeEventListener('abort', run); // Node keeps some signals as long as they have a listener
  }

  get waitUntil(): WaitUntil {
    return (work) => {
      let execution: { readonly waitUntil?: WaitUntil | undefined } = this.tools;
      try {
        if (this.hono) execution = this.hono.executionCtx;
      } catch {
        // the host has passed none
      }
      execution.waitUntil?.(work);
    };
  }

  /** The bytes of the body. If the host has read it already, the host has bounded it. @throws GatewayError `payload_too_large` */
  async body(): Promise<ArrayBuffer> {
    const c = this.hono;
    if (!c) return new ArrayBuffer(0);
    if (!c.req.raw.bodyUsed) await this.tools.limitBody?.(c, async () => undefined);
    return c.req.arrayBuffer();
  }

  override end(): void {
    if (this.isEnded) return;
    super.end();
    this.onEnd?.();
    this.onEnd = undefined;
  }
}
