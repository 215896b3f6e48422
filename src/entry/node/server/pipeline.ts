import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Waiting requests of one connection at which reading from it pauses. */
const MANY = 1_000;

/** Waiting requests of all connections, some KB each, beyond which a connection with more than `FEW` is closed. */
const TOO_MANY = 20_000;
const FEW = 16;

const LINE = Symbol('requests of a connection');

/** The requests of one connection: the answer of the last one, and how many have not been begun. */
interface Line {
  last: ServerResponse;
  waiting: number;
}

type Lined = Socket & { [LINE]?: Line };

/** The request that came last on a connection, by its answer, and whether those before it have theirs. */
export function lastOf(socket: Lined): { readonly answer: ServerResponse; readonly isNext: boolean } | undefined {
  const line = socket[LINE];
  return line && { answer: line.last, isNext: line.waiting === 0 };
}

type Serve = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/**
 * Begins pipelined requests one after the other. Otherwise a client could send thousands, read no answer, and have all
 * answers kept in memory.
 */
export function inTurn(begin: Serve): Serve {
  let waiting = 0;

  const lineUp = (line: Line, socket: Socket) => {
    line.waiting++;
    if (++waiting > TOO_MANY && line.waiting > FEW) socket.destroy();
    else if (line.waiting >= MANY) socket.pause();
  };

  const moveUp = (line: Line, socket: Socket) => {
    waiting--;
    if (--line.waiting === MANY - 1) socket.resume();
  };

  const beginLine = (socket: Lined, last: ServerResponse) => {
    const line = (socket[LINE] = { last, waiting: 0 });
    socket.once('close', () => (waiting -= line.waiting));
  };

  return (incoming, outgoing) => {
    const socket: Lined = incoming.socket;
    if (socket.destroyed) return; // parsed from the last bytes of a closed connection
    const line = socket[LINE];
    const before = line?.last;
    if (line) line.last = outgoing;
    else beginLine(socket, outgoing);
    if (!line || !before || before.closed) return begin(incoming, outgoing);
    lineUp(line, socket);
    // In a turn of its own, so that a client that has sent thousands does not block the event loop.
    const follow = () => {
      if (socket.destroyed) return;
      moveUp(line, socket);
      begin(incoming, outgoing);
    };
    before.once('close', () => setImmediate(follow));
  };
}
