import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
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

function descriptorLimit(): number {
  try {
    return Number(
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ?? USUAL_DESCRIPTORS,
    );
  } catch {
    return USUAL_DESCRIPTORS; // no Linux
  }
}

interface Peers {
  /** Whose connection it is. */
  readonly peerOf: (socket: Socket) => string;
  /** Whether others come by it. Its connections are closed after those of all others. */
  readonly isProxy: (socket: Socket) => boolean;
}

/** The connections of a listener: at most `most`, if enough of them are without a request. */
export class Connections {
  readonly #most: number;
  readonly #peers: Peers;
  /** The oldest first. */
  readonly #open = new Set<Socket>();
  #notBefore = 0;

  constructor(most: number, peers: Peers) {
    this.#most = most;
    this.#peers = peers;
  }

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    if (this.#open.size > this.#most && performance.now() >= this.#notBefore) this.#makeRoom();
  }

  #makeRoom(): void {
    const { isProxy, peerOf } = this.#peers;
    const most = Math.floor(this.#most * (1 - BATCH));
    const byPeer = [...Map.groupBy([...this.#open].filter(hasNoRequest), peerOf).values()];
    const ranks = Map.groupBy(byPeer, ([one]) => one !== undefined && isProxy(one));
    for (const ofProxies of [false, true]) this.#closeSome(ranks.get(ofProxies) ?? [], this.#open.size - most);
    if (this.#open.size > this.#most) this.#notBefore = performance.now() + PAUSE_MS;
  }

  /** Closes so many, or all: of who has most, the idle ones first and of these the oldest. */
  #closeSome(byPeer: readonly (readonly Socket[])[], many: number): void {
    const counts = byPeer.map(({ length }) => length);
    const level = levelOf(counts, many);
    for (const sockets of byPeer) {
      if (sockets.length <= level) continue;
      const inTurn = sockets.toSorted((a, b) => Number(hasPart(a)) - Number(hasPart(b)));
      for (const socket of inTurn.slice(0, sockets.length - level)) {
        this.#open.delete(socket);
        socket.destroy();
      }
    }
  }
}

const READ = Symbol('bytes read when the last request was over');

type Counted = Socket & { [READ]?: number };

/** The connection's request is over. */
export function rest(socket: Counted): void {
  socket[READ] = socket.bytesRead;
}

const hasNoRequest = (socket: Socket) => lastOf(socket)?.answer.closed !== false;

/** Something has come since. It may be an empty line, so this alone keeps nothing open. */
const hasPart = (socket: Counted) => socket.bytesRead !== (socket[READ] ?? 0);

/** What everybody may keep at most, so that so many go. */
function levelOf(counts: readonly number[], many: number): number {
  const sorted = counts.toSorted((a, b) => b - a);
  let sum = -many;
  for (const [at, count] of sorted.entries()) {
    sum += count;
    const level = Math.floor(sum / (at + 1));
    if (level >= (sorted[at + 1] ?? 0)) return level;
  }
  return 0;
}
