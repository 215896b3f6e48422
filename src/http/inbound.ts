import type { Inbound, Outbound } from '../core/inbound.ts';
import type { WaitUntil } from '../core/runtime.ts';

/** What a runtime passes with a request, besides the `Request`. */
export interface WebBindings {
  readonly waitUntil?: WaitUntil;
  readonly address?: string;
}

/** A web `Request` as plain values. */
export class WebInbound implements Inbound {
  readonly path: string;
  readonly query: string;
  readonly origin: string;
  readonly waitUntil: WaitUntil;
  readonly address: string;
  readonly #request: Request;

  constructor(request: Request, { waitUntil = () => undefined, address = '' }: WebBindings = {}) {
    const { url } = request;
    const start = url.indexOf('/', url.indexOf('://') + 3);
    const [target = ''] = url.slice(start).split('#', 1);
    const mark = target.indexOf('?');
    this.#request = request;
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? '' : target.slice(mark + 1);
    this.origin = url.slice(0, start);
    this.waitUntil = waitUntil;
    this.address = address;
  }

  get method(): string {
    return this.#request.method;
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  /** Of a read, only if its head announces one: asking costs some runtimes a whole `Request`. */
  get body(): ReadableStream<Uint8Array> | null {
    const isRead = this.method === 'GET' || this.method === 'HEAD';
    return isRead && !this.#announcesBody ? null : this.#request.body;
  }

  get #announcesBody(): boolean {
    return this.header('content-length') !== undefined || this.header('transfer-encoding') !== undefined;
  }

  onLeave(leave: () => void): void {
    const { signal } = this.#request;
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  }
}

/** An answer as a web `Response`. */
export function responseOf({ status, headers: pairs, body }: Outbound): Response {
  const headers: Record<string, string> = {};
  for (let at = 0; at < pairs.length; at += 2) headers[pairs[at] ?? ''] = pairs[at + 1] ?? '';
  return new Response(body, { status, headers });
}
