import type { IncomingMessage, ServerResponse } from 'node:http';
import type { addresses } from './address.ts';

const PROBE = /^\/(?:livez|readyz)\/?(?:\?|$)/;

/** How many requests may be under way, and how many of one address when half of the room is taken. */
export class Room {
  readonly #most: number;
  readonly #addressOf: ReturnType<typeof addresses>;
  readonly #taken = new Map<string, number>();
  #size = 0;

  constructor(most: number, addressOf: ReturnType<typeof addresses>) {
    this.#most = most;
    this.#addressOf = addressOf;
  }

  /** Whether a request may begin, which then has its place until it is answered. A probe always may. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const { socket, headers, url = '' } = incoming;
    if (this.#most === Infinity || PROBE.test(url)) return true;
    const address = this.#addressOf(socket.remoteAddress, [headers['x-forwarded-for']].flat().join(','));
    const taken = this.#taken.get(address) ?? 0;
    const isFull = this.#size >= this.#most || (this.#size * 2 >= this.#most && taken * 4 >= this.#most);
    if (isFull) return false;
    this.#count(address, 1);
    outgoing.once('close', () => this.#count(address, -1));
    return true;
  }

  #count(address: string, by: number): void {
    this.#size += by;
    const taken = (this.#taken.get(address) ?? 0) + by;
    if (taken === 0) this.#taken.delete(address);
    else this.#taken.set(address, taken);
  }
}
