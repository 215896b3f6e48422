import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { Bag } from '../../../core/bag.ts';
import { Tally } from '../../../core/tally.ts';
import type { addresses } from './address.ts';
import { rest } from './connections.ts';

const PROBE = /^\/(?:livez|readyz)\/?(?:\?|$)/;

/**
 * How long there has to be no request before idle connections are closed: a request may be on its way. In several looks,
 * since after a stall of the process the first one is before anything is read.
 */
const QUIET_LOOKS = 10;
const LOOK_MS = 25;

/** Turns of the event loop without a new connection after which the backlog is empty. */
const QUIET_TURNS = 5;
/** A turn that takes longer leaves room for another one behind the look at the backlog. */
const BRIEF_MS = 0.3;
const MAX_BACKLOG_MS = 3_000;

/**
 * The requests under way on a listener: how many there may be, and how many of one address when half of the room is taken.
 * It can be closed without dropping any.
 */
export class Traffic {
  readonly #most: number;
  readonly #addressOf: ReturnType<typeof addresses>;
  readonly #inFlight = new Bag<ServerResponse>();
  /** Those of them that only wait, and gave their room back. */
  readonly #aside = new Set<ServerResponse>();
  /** Requests that take room, by address, and all of them. */
  readonly #taken = new Tally();
  #size = 0;
  /** Connections so far. */
  #accepted = 0;
  /** Requests so far. */
  #begun = 0;
  #isDraining = false;

  constructor(most: number, addressOf: ReturnType<typeof addresses>) {
    this.#most = most;
    this.#addressOf = addressOf;
  }

  /** Requests that have no answer yet. */
  get size(): number {
    return this.#inFlight.size;
  }

  /** Without those that only wait. */
  get underWay(): number {
    return this.#inFlight.size - this.#aside.size;
  }

  accept(): void {
    this.#accepted++;
  }

  /** Notes a request until it is over. Returns false only where it needs room and there is none: probes and refused ones need none. */
  begin(outgoing: ServerResponse, isRefused: boolean): boolean {
    this.#begun++;
    if (this.#isDraining) closeAfter(outgoing);
    const { req } = outgoing;
    const needsRoom = !isRefused && this.#most < Infinity && !PROBE.test(req.url ?? '');
    const address = needsRoom ? this.#addressOf(req.socket.remoteAddress, (name) => headerIn(req, name)) : '';
    const hasRoom = !needsRoom || this.#hasRoom(address);
    const taken = needsRoom && hasRoom ? 1 : 0;
    this.#count(address, taken);
    const leave = this.#inFlight.add(outgoing);
    outgoing.on('close', () => {
      leave();
      if (!this.#aside.delete(outgoing)) this.#count(address, -taken);
      rest(req.socket);
    });
    return hasRoom;
  }

  /** Gives back the room of a request that waits for a change. */
  leaveRoom(outgoing: ServerResponse): void {
    const { req } = outgoing;
    if (this.#aside.has(outgoing) || outgoing.closed) return;
    this.#aside.add(outgoing);
    if (this.#most === Infinity) return; // it took none
    this.#count(
      this.#addressOf(req.socket.remoteAddress, (name) => headerIn(req, name)),
      -1,
    );
  }

  #hasRoom(address: string): boolean {
    const isHalfFull = this.#size * 2 >= this.#most;
    return this.#size < this.#most && !(isHalfFull && this.#taken.of(address) * 4 >= this.#most);
  }

  #count(address: string, change: number): void {
    if (change === 0) return;
    this.#size += change;
    this.#taken.add(address, change);
  }

  /** Answers from now on tell their clients to close. */
  tellToClose(): void {
    this.#isDraining = true;
    for (const outgoing of this.#inFlight) closeAfter(outgoing);
  }

  /**
   * Takes no new connections, lets requests in flight finish, cuts off what is left after `graceMs`. Clients are told to
   * close only when no more is accepted: those that connect again at once would be reset with the listener.
   */
  async drain(graceMs: number, { stopAccepting, cutAll }: Ends): Promise<void> {
    const endAt = Date.now() + graceMs;
    const isEmpty = await this.#emptyBacklog(graceMs / 4);
    if (isEmpty) await this.#stop(stopAccepting, graceMs / 4);
    this.tellToClose();
    if (!isEmpty) {
      await this.#emptyBacklog(graceMs / 4); // with fewer requests to answer meanwhile
      await this.#stop(stopAccepting, graceMs / 4);
    }
    for (let quiet = 0; quiet < QUIET_LOOKS && Date.now() < endAt;) {
      const before = this.#begun;
      await sleep(LOOK_MS);
      quiet = this.#inFlight.size === 0 && this.#begun === before ? quiet + 1 : 0;
    }
    cutAll();
  }

  /**
   * Connections that the kernel has taken would be reset with the listener. Node accepts one or so in a turn; a flood
   * of new ones is given up on after some seconds. Returns whether there are no more.
   */
  async #emptyBacklog(mostMs: number): Promise<boolean> {
    const endAt = Date.now() + Math.min(MAX_BACKLOG_MS, mostMs);
    let quiet = 0;
    for (let turns = 0; quiet < QUIET_TURNS && (turns < QUIET_TURNS || Date.now() < endAt); turns++)
      quiet = (await this.#turn()).isQuiet ? quiet + 1 : 0;
    return quiet === QUIET_TURNS;
  }

  /** Each socket at the end of a turn in which nothing was waiting for it. */
  async #stop(sockets: Ends['stopAccepting'], mostMs: number): Promise<void> {
    const endAt = Date.now() + Math.min(MAX_BACKLOG_MS, mostMs);
    for (const stop of sockets) {
      let isGood: boolean;
      do {
        const { isQuiet, isBrief } = await this.#turn();
        isGood = isQuiet && isBrief;
      } while (!isGood && Date.now() < endAt);
      stop();
    }
  }

  async #turn() {
    const [before, at] = [this.#accepted, performance.now()];
    await turn();
    return { isQuiet: this.#accepted === before, isBrief: performance.now() - at < BRIEF_MS };
  }
}

/** The traffic of each server. */
export type Rooms = WeakMap<object, Traffic>;

/** Gives back the room of a request, by its environment. */
export const leavingRoom =
  (rooms: Rooms) =>
  (env: object): void => {
    if (!('outgoing' in env)) return;
    const outgoing = env.outgoing as ServerResponse;
    const { server } = outgoing.req.socket as { server?: object };
    if (server) rooms.get(server)?.leaveRoom(outgoing);
  };

interface Ends {
  /** One for each socket that listens. */
  readonly stopAccepting: readonly (() => void)[];
  readonly cutAll: () => void;
}

const headerIn = ({ headers }: IncomingMessage, name: string) => headers[name] as string | undefined; // none of a list

/** Tells the client not to send another request on this connection. */
export function closeAfter(outgoing: ServerResponse): void {
  if (!outgoing.headersSent) outgoing.setHeader('Connection', 'close');
}
