import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Bag } from '../../../core/bag.ts';

/** What all clients together may have been sent and not taken yet, and the part of it that one owner may have. */
const MOST_BYTES = 256 * 1_048_576;
const SHARE = 1 / 8;

const SWEEP_MS = 1_000;

/** What Node's own timeout of a socket looks at. It has no public name, and counts from a write on: a body is one write. */
type Writing = Socket & {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
};

interface Waiting {
  readonly outgoing: ServerResponse;
  readonly owner: string;
  bytes: number;
  /** What the kernel had taken when that last grew, and when this was. */
  taken: number;
  at: number;
}

/** The answers that their clients are slow to take, counted by owner. An answer that the kernel takes at once is not here. */
export class Unsent {
  readonly #mostBytes: number;
  readonly #waiting = new Bag<Waiting>();
  readonly #owners = new Map<string, number>();
  #bytes = 0;

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** Whether so much is unsent that somebody may be full: no owner can be as long as all together have no more than a share. */
  get isMuch(): boolean {
    return this.#bytes > this.#mostBytes * SHARE;
  }

  isFull(owner: string): boolean {
    return (this.#owners.get(owner) ?? 0) > this.#mostBytes * SHARE;
  }

  /**
   * Counts what is unsent of an answer, until it has been sent.
   * @returns a function that counts it anew
   */
  add(outgoing: ServerResponse, owner: string): () => void {
    const one: Waiting = { outgoing, owner, bytes: 0, taken: 0, at: performance.now() };
    const leave = this.#waiting.add(one);
    const recount = () => {
      this.#count(one);
      if (this.#bytes > this.#mostBytes) this.#makeRoom();
    };
    outgoing.once('close', () => {
      leave();
      recount();
    });
    recount();
    return recount;
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
    const bytes = outgoing.closed ? 0 : bytesIn(outgoing.socket);
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

function largest<T>(all: Iterable<T>, sizeOf: (one: T) => number): T | undefined {
  let found: T | undefined;
  for (const one of all) if (!found || sizeOf(one) > sizeOf(found)) found = one;
  return found;
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
