import type { IncomingMessage } from 'node:http';
import type { addresses } from './address.ts';

const PROBE = /^\/(?:livez|readyz)\/?(?:\?|$)/;

const nothing = () => undefined;

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

  /** Takes a place for a request. Returns what gives it back; undefined if there is none. A probe needs none. */
  take({ socket, headers, url = '' }: IncomingMessage): (() => void) | undefined {
    if (this.#most === Infinity || PROBE.test(url)) return nothing;
    const address = this.#addressOf(socket.remoteAddress, String(headers['x-forwarded-for'] ?? ''));
    const taken = this.#taken.get(address) ?? 0;
    const isFull = this.#size >= this.#most || (this.#size * 2 >= this.#most && taken * 4 >= this.#most);
    if (isFull) return undefined;
    this.#count(address, 1);
    return () => this.#count(address, -1);
  }

  #count(address: string, by: number): void {
    this.#size += by;
    const taken = (this.#taken.get(address) ?? 0) + by;
    if (taken === 0) this.#taken.delete(address);
    else this.#taken.set(address, taken);
  }
}
