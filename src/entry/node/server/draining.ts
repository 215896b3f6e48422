import type { ServerResponse } from 'node:http';
import { Bag } from '../../../core/bag.ts';
import { rest } from './connections.ts';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

/** How long there has to be no request before idle connections are closed: a request may be on its way. */
const QUIET_MS = 250;
const POLL_MS = 25;

/** Turns of the event loop without a new connection after which the backlog is empty. */
const QUIET_TURNS = 5;
const MAX_BACKLOG_MS = 1_000;

/** The connections and requests of a listener, so that it can be closed without dropping any. */
export class Traffic {
  readonly inFlight = new Bag<ServerResponse>();
  #accepted = 0;
  #lastAt = 0;
  isDraining = false;

  accept(): void {
    this.#accepted++;
  }

  /** `leave`: called when the request is over. */
  begin(outgoing: ServerResponse, leave?: () => void): void {
    const end = this.inFlight.add(outgoing);
    outgoing.on('close', () => {
      end();
      leave?.();
      rest(outgoing.req.socket);
      this.#lastAt = Date.now();
    });
  }

  /** Takes no new connections, lets requests in flight finish, cuts off what is left after `graceMs`. */
  async drain(graceMs: number, ends: { stopAccepting: () => void; cutAll: () => void }): Promise<void> {
    this.isDraining = true;
    this.#lastAt = Date.now();
    const endAt = this.#lastAt + graceMs;
    for (const outgoing of this.inFlight) closeAfter(outgoing);
    await this.#emptyBacklog();
    ends.stopAccepting();
    while (!this.#isQuiet() && Date.now() < endAt) await sleep(POLL_MS);
    ends.cutAll();
  }

  #isQuiet(): boolean {
    return this.inFlight.size === 0 && Date.now() - this.#lastAt >= QUIET_MS;
  }

  /**
   * Connections that the kernel has taken would be reset with the listener. Node accepts one or so in a turn; a flood
   * of new ones is given up on after a second.
   */
  async #emptyBacklog(): Promise<void> {
    const endAt = Date.now() + MAX_BACKLOG_MS;
    let seen: number;
    do {
      seen = this.#accepted;
      for (let turns = 0; turns < QUIET_TURNS; turns++) await turn();
    } while (this.#accepted > seen && Date.now() < endAt);
  }
}

/** Tells the client not to send another request on this connection. */
export function closeAfter(outgoing: ServerResponse): void {
  if (!outgoing.headersSent) outgoing.setHeader('Connection', 'close');
}
