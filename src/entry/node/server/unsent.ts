import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Bag } from '../../../core/bag.ts';
import type { Backlog } from '../../../middleware/sending.ts';
import { addressOwner, type Owner } from '../../../store/store.ts';
import { peerOf } from './address.ts';

/** What all clients together may have been sent and not taken yet, and the part of it that one owner may have. */
const MOST_BYTES = 256 * 1_048_576;
const SHARE = 1 / 8;

const SWEEP_MS = 1_000;

/** What Node's own timeout of a socket looks at. It has no public name, and counts from a write on: a body is one write. */
type Writing = Socket & {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
};

/** An answer, and whose share it takes. */
type Owned = ServerResponse & { [OWNER]?: Owner };

const OWNER = Symbol('owner');

interface Waiting {
  readonly outgoing: ServerResponse;
  readonly owner: Owner;
  /** Bytes of a stream that have not come to the socket. */
  readonly queued: () => number;
  bytes: number;
  /** What the kernel had taken when that last grew, and when this was. */
  taken: number;
  at: number;
}

/** The answers that their clients are slow to take, counted by owner. An answer that the kernel takes at once is not here. */
export class Unsent implements Backlog {
  readonly #mostBytes: number;
  readonly #waiting = new Bag<Waiting>();
  readonly #owners = new Map<string, number>();
  #bytes = 0;

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  note(env: object, owner: Owner): void {
    const outgoing = outgoingIn(env);
    if (outgoing) outgoing[OWNER] = owner;
  }

  /** No owner can be over its share as long as all together have no more than that. */
  isFull(owner: Owner): boolean {
    const most = this.#mostBytes * SHARE;
    return this.#bytes > most && (this.#owners.get(owner) ?? 0) > most;
  }

  /** Reads what there is, since it is in memory anyway, and breaks off if too much of the owner's is unsent by then. */
  metered(env: object, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const outgoing = outgoingIn(env);
    if (!outgoing || outgoing.closed) return body; // the listener cancels it where the client has left
    const reader = body.getReader();
    const source = {
      start: (to: ReadableStreamDefaultController<Uint8Array>) => void this.#pump(reader, to, outgoing),
      cancel: (reason: unknown) => reader.cancel(reason),
    };
    return new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
  }

  /** Counts what is unsent of an answer that has been written. */
  look(outgoing: ServerResponse): void {
    if (!outgoing.closed && (outgoing.socket?.writableLength ?? 0) > 0) this.#add(outgoing);
  }

  async #pump(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    to: ReadableStreamDefaultController<Uint8Array>,
    outgoing: ServerResponse,
  ): Promise<void> {
    const one = this.#add(outgoing, () => -(to.desiredSize ?? 0));
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        to.enqueue(part.value);
        this.#recount(one);
        if (this.isFull(one.owner)) return void outgoing.destroy();
      }
      to.close();
    } catch (error) {
      to.error(error);
    }
  }

  #add(outgoing: Owned, queued: () => number = () => 0): Waiting {
    const owner = outgoing[OWNER] ?? addressOwner(peerOf(outgoing.req.socket));
    const one: Waiting = { outgoing, owner, queued, bytes: 0, taken: 0, at: performance.now() };
    const leave = this.#waiting.add(one);
    outgoing.once('close', () => {
      leave();
      this.#recount(one);
    });
    this.#recount(one);
    return one;
  }

  #recount(one: Waiting): void {
    this.#count(one);
    if (this.#bytes > this.#mostBytes) this.#makeRoom();
  }

  /**
   * Cuts off clients that take nothing of their answer for `afterMs`, whatever they send meanwhile. If there is nothing to
   * take, it is the client that waits, for the rest of a stream.
   * @returns a function that ends it
   */
  cutStalled(afterMs: number): () => void {
    const timer = setInterval(() => this.#sweep(afterMs), Math.min(SWEEP_MS, afterMs)).unref();
    return () => clearInterval(timer);
  }

  #sweep(afterMs: number): void {
    const now = performance.now();
    for (const one of this.#waiting) {
      const { socket } = one.outgoing;
      this.#count(one);
      const taken = takenFrom(socket);
      if (one.bytes === 0 || taken !== one.taken) [one.taken, one.at] = [taken, now];
      else if (now - one.at >= afterMs) socket?.destroy();
    }
  }

  #count(one: Waiting): void {
    const { outgoing } = one;
    const bytes = outgoing.closed ? 0 : bytesIn(outgoing.socket) + one.queued();
    const more = bytes - one.bytes;
    if (more === 0) return;
    one.bytes = bytes;
    this.#bytes += more;
    const all = (this.#owners.get(one.owner) ?? 0) + more;
    if (all > 0) this.#owners.set(one.owner, all);
    else this.#owners.delete(one.owner);
  }

  /** However many owners are full, nobody else is refused for it: who has most loses the largest answer. */
  #makeRoom(): void {
    for (const one of this.#waiting) this.#count(one); // some has been taken since the last look
    while (this.#bytes > this.#mostBytes) {
      const [most] = largest(this.#owners, ([, bytes]) => bytes) ?? [];
      const own = Array.from(this.#waiting).filter(({ owner }) => owner === most);
      const one = largest(own, ({ bytes }) => bytes);
      if (!one) return;
      one.outgoing.socket?.destroy();
      this.#count(one);
    }
  }
}

const outgoingIn = (env: object): Owned | undefined =>
  'outgoing' in env && env.outgoing instanceof ServerResponse ? env.outgoing : undefined;

function largest<T>(all: Iterable<T>, sizeOf: (one: T) => number): T | undefined {
  let most: T | undefined;
  for (const one of all) if (!most || sizeOf(one) > sizeOf(most)) most = one;
  return most;
}

/** Of a text that is not ASCII, only the queue has the bytes. */
function bytesIn(socket: Writing | null): number {
  return socket && !socket.destroyed ? Math.max(socket.writableLength, queueOf(socket).queued) : 0;
}

function takenFrom(socket: Writing | null): number {
  if (!socket) return 0;
  const { given, queued } = queueOf(socket);
  return given - queued;
}

/** What the kernel was given, and what of it waits in front of it. */
const queueOf = ({ _handle: handle }: Writing) => ({
  given: handle?.bytesWritten ?? 0,
  queued: handle?.writeQueueSize ?? 0,
});
