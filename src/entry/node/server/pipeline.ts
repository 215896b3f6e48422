import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Of one connection, after which no more is read from it until they are fewer. */
const MANY = 1_000;

/** Of all connections, some KB each; a connection with more than a few of them is then cut off. */
const TOO_MANY = 20_000;
const FEW = 16;

const LINE = Symbol('requests of a connection');

/** The requests of one connection: the last that came, and how many have not been begun. */
interface Line {
  last: ServerResponse;
  waiting: number;
  isWatched: boolean;
}

type Lined = Socket & { [LINE]?: Line };

/** The request that came last on a connection, by its answer, and whether those before it have theirs. */
export function lastOf(socket: Lined): { readonly answer: ServerResponse; readonly isNext: boolean } | undefined {
  const line = socket[LINE];
  return line && { answer: line.last, isNext: line.waiting === 0 };
}

export type Serve = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/**
 * Pipelined requests are begun one after the other: who sends thousands and reads none would have all their answers
 * made and kept.
 */
export function inTurn(begin: Serve): Serve {
  let waiting = 0;

  const lineUp = (line: Line, socket: Socket) => {
    if (!line.isWatched) socket.once('close', () => (waiting -= line.waiting));
    line.isWatched = true;
    line.waiting++;
    if (++waiting > TOO_MANY && line.waiting > FEW) socket.destroy();
    else if (line.waiting >= MANY) socket.pause();
  };

  const moveUp = (line: Line, socket: Socket) => {
    waiting--;
    if (--line.waiting === MANY - 1) socket.resume();
  };

  return (incoming, outgoing) => {
    const socket: Lined = incoming.socket;
    if (socket.destroyed) return; // what the parser still finds in the last bytes
    const line = socket[LINE];
    const before = line?.last;
    if (line) line.last = outgoing;
    else socket[LINE] = { last: outgoing, waiting: 0, isWatched: false };
    if (!line || !before || before.closed) return begin(incoming, outgoing);
    lineUp(line, socket);
    // In a turn of its own, or who has sent thousands would keep the loop until they are all answered.
    const follow = () => {
      if (socket.destroyed) return;
      moveUp(line, socket);
      begin(incoming, outgoing);
    };
    before.once('close', () => setImmediate(follow));
  };
}
