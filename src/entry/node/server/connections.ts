import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { peerOf } from './address.ts';
import { lastOf } from './pipeline.ts';

/** Where the system does not tell. */
const USUAL_DESCRIPTORS = 4_096;

/** For the log, the store, the admin listener and the sockets that listen. */
const OTHER_DESCRIPTORS = 128;

/** How many more than are too many are closed, as a part of all: not every new connection looks at all others. */
const BATCH = 1 / 16;

/** If not that many can be closed, the next look is later. */
const PAUSE_MS = 100;

/** How many connections clients may have. Node has raised the limit of its process as far as it may. */
export function mostConnections(upstreamConnections: number): number {
  const limit = descriptorLimit();
  return Math.floor(Math.max(limit / 2, limit - upstreamConnections - OTHER_DESCRIPTORS));
}

/** Of files and connections of this process. */
function descriptorLimit(): number {
  try {
    return Number(
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ?? USUAL_DESCRIPTORS,
    );
  } catch {
    return USUAL_DESCRIPTORS; // no Linux
  }
}

/** The connections of a listener: at most `most`, if enough of them are without a whole request. */
export class Connections {
  readonly #most: number;
  /** Whether others come by it. Its connections are closed after those of all others. */
  readonly #isProxy: (socket: Socket) => boolean;
  /** The oldest first. */
  readonly #open = new Set<Socket>();
  #notBefore = 0;

  constructor(most: number, isProxy: (socket: Socket) => boolean) {
    this.#most = most;
    this.#isProxy = isProxy;
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    if (this.#open.size > this.#most && performance.now() >= this.#notBefore) this.#makeRoom();
  }

  /**
   * Closes those that everybody has beyond as many as others: of each the idle ones first, and of these the oldest; none
   * whose request is under way, which may be a purchase.
   */
  #makeRoom(): void {
    const most = Math.floor(this.#most * (1 - BATCH));
    const places = [...Map.groupBy(this.#open, peerOf).values()].flatMap((sockets) => {
      const ofProxy = Number(sockets.slice(0, 1).some(this.#isProxy));
      const uses = sockets.map((socket) => ({ socket, use: useOf(socket) }));
      const inTurn = uses.filter(({ use }) => use < WHOLE).toSorted((a, b) => a.use - b.use);
      return inTurn.map((one, at) => ({ ...one, ofProxy, nth: inTurn.length - at }));
    });
    const inTurn = places.toSorted((a, b) => a.ofProxy - b.ofProxy || b.nth - a.nth || a.use - b.use);
    for (const { socket } of inTurn.slice(0, this.#open.size - most)) {
      this.#open.delete(socket);
      socket.destroy();
    }
    if (this.#open.size > this.#most) this.#notBefore = performance.now() + PAUSE_MS;
  }
}

const READ = Symbol('bytes read when the last request was over');

type Rested = Socket & { [READ]?: number };

/** The connection's request is over. */
export function rest(socket: Rested): void {
  socket[READ] = socket.bytesRead;
}

const [IDLE, PART, WHOLE] = [0, 1, 2] as const;

/** How much of a request there is. What has come since the last one may be an empty line. */
function useOf(socket: Rested): number {
  const answer = lastOf(socket)?.answer;
  if (answer?.closed === false) return answer.req.complete ? WHOLE : PART;
  return socket.bytesRead === (socket[READ] ?? 0) ? IDLE : PART;
}
