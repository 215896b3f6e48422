import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorCode } from '../../../core/errors.ts';
import type { Inbound, Outbound } from '../../../core/inbound.ts';
import type { WaitUntil } from '../../../core/runtime.ts';
import { addressOwner } from '../../../store/owner.ts';
import type { AddressOf } from './address.ts';
import { readHead, valueOf } from './head.ts';
import { PROBE } from './shed.ts';
import type { Unsent } from './unsent.ts';

interface NodeTools {
  readonly waitUntil: WaitUntil;
  readonly addressOf: AddressOf;
  readonly unsent: Unsent;
}

/** A request as Node's parser read it. Headers are looked up only when they are asked for. */
export class NodeInbound implements Inbound {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly origin: string;
  readonly refused: ErrorCode | undefined;
  readonly body: ReadableStream<Uint8Array> | null;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #tools: NodeTools;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, tools: NodeTools) {
    const { target, origin, refused } = readHead(incoming);
    const mark = target.indexOf('?');
    const hash = target.indexOf('#');
    const end = hash < 0 ? target.length : hash;
    this.method = incoming.method ?? '';
    this.path = target.slice(0, mark < 0 || mark > end ? end : mark);
    this.query = mark < 0 || mark > end ? '' : target.slice(mark + 1, end);
    this.origin = origin;
    this.refused = refused;
    this.body = bodyOf(incoming);
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#tools = tools;
  }

  header(name: string): string | undefined {
    return valueOf(name, this.#incoming.rawHeaders);
  }

  get address(): string {
    return this.#tools.addressOf(this.#incoming);
  }

  get waitUntil(): WaitUntil {
    return this.#tools.waitUntil;
  }

  onLeave(leave: () => void): void {
    const outgoing = this.#outgoing;
    const look = () => {
      if (!outgoing.writableFinished) leave();
    };
    if (outgoing.closed) look();
    else outgoing.once('close', look);
  }

  isBacklogged(owner: string | undefined): boolean {
    const { unsent } = this.#tools;
    return unsent.isMuch && unsent.isFull(this.#ownerOr(owner)) && !PROBE.test(this.path);
  }

  #ownerOr(owner: string | undefined): string {
    return owner ?? addressOwner(this.address);
  }

  /** Sends an answer, and returns a placeholder for Hono. */
  readonly send = (answer: Outbound): Response => {
    const { status, headers, body, isAscii, owner } = answer;
    const isStream = body instanceof ReadableStream;
    if (!isStream && status !== 204 && status !== 304) headers.push('Content-Length', String(lengthOf(answer)));
    const outgoing = this.#outgoing.writeHead(status, headers);
    if (isStream) void this.#stream(body, outgoing, owner);
    else if (isAscii) outgoing.end(body, 'latin1');
    else outgoing.end(body ?? undefined);
    if (!isStream && outgoing.socket && outgoing.socket.writableLength > 0)
      this.#tools.unsent.add(outgoing, this.#ownerOr(owner));
    return SENT;
  };

  /**
   * Writes what there is, since it is in memory anyway, and breaks off if too much is unsent by then. If the client leaves before
   * the end, cancels the stream.
   */
  async #stream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, owner: string | undefined): Promise<void> {
    if (outgoing.closed) return body.cancel();
    const recount = this.#tools.unsent.add(outgoing, this.#ownerOr(owner));
    const reader = body.getReader();
    outgoing.flushHeaders();
    outgoing.once('close', () => void reader.cancel().catch(() => undefined));
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        if (this.isBacklogged(owner)) return void outgoing.destroy();
        outgoing.write(part.value, recount);
        recount();
      }
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  }
}

const SENT = new Response();

function lengthOf({ body, isAscii }: Outbound): number {
  if (body === null || body instanceof ReadableStream) return 0;
  return isAscii ? body.length : Buffer.byteLength(body);
}

/** The body of a request; null if its head announces none. If the reader cancels, the rest is discarded. */
function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> | null {
  const { rawHeaders } = incoming;
  const hasNone = (valueOf('content-length', rawHeaders) ?? '0') === '0';
  if (hasNone && valueOf('transfer-encoding', rawHeaders) === undefined) return null;
  const parts = incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array, undefined>;
  const source = {
    async pull(to: ReadableStreamDefaultController<Uint8Array>) {
      const part = await parts.next();
      if (part.done) to.close();
      else to.enqueue(part.value);
    },
    async cancel() {
      await parts.return?.();
      incoming.resume();
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}
