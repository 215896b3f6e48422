import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

// Distance on one machine. The page of examples/dashboard orders a line to itself or to the gateway, calls through it, and asks what it has carried.

const ROUND_TRIP_MS = 150;
/** 1.6 Mbit/s, each way. */
const BYTES_PER_MS = 200;
const MOST_LINES = 8;

interface Carried {
  requests: number;
  preflights: number;
  /** Bytes from the browser and to it, heads included. */
  up: number;
  down: number;
}

interface Line {
  readonly port: number;
  readonly carried: Carried;
  readonly close: () => void;
}

/** One direction of a line. Says how many milliseconds it takes until so many bytes are there, behind all that are on their way. */
function lane(): (bytes: number) => number {
  let freeAt = 0;
  return (bytes) => {
    const now = performance.now();
    freeAt = Math.max(now, freeAt) + bytes / BYTES_PER_MS;
    return freeAt - now + ROUND_TRIP_MS / 2;
  };
}

/** Passes on what comes, in order and late. */
function carry(from: Socket, to: Socket, opened: Promise<void>, arrivesIn: (bytes: number) => number): void {
  let last: Promise<unknown> = opened;
  from.on('data', (chunk: Buffer) => {
    void opened.then(() => {
      last = Promise.all([last, delay(arrivesIn(chunk.length))]).then(() => to.write(chunk));
    });
  });
  from.once('end', () => void opened.then(() => last.then(() => to.end())));
  from.once('error', () => to.destroy());
  from.once('close', () => void opened.then(() => last.then(() => to.destroy())));
}

function note(carried: Carried, chunk: Buffer): void {
  const [, method] = /^([A-Z]+) \S+ HTTP\/1\.1\r\n/.exec(chunk.toString('latin1')) ?? [];
  carried.up += chunk.length;
  if (method === 'OPTIONS') carried.preflights += 1;
  else if (method !== undefined) carried.requests += 1;
}

/** A new connection takes a round trip before anything can be sent, as everywhere. */
async function openLine(to: number): Promise<Line> {
  const carried: Carried = { requests: 0, preflights: 0, up: 0, down: 0 };
  const sockets = new Set<Socket>();
  const [up, down] = [lane(), lane()];
  const server: Server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true });
    const opened = delay(ROUND_TRIP_MS);
    for (const socket of [near, far]) sockets.add(socket.setNoDelay(true));
    near.on('data', (chunk: Buffer) => note(carried, chunk));
    far.on('data', (chunk: Buffer) => (carried.down += chunk.length));
    carry(near, far, opened, up);
    carry(far, near, opened, down);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: (server.address() as AddressInfo).port, carried, close };
}

/**
 * `POST /_distance/<name>` opens a line to one of these ports, `GET /_distance/<port>` says what it has carried, and `DELETE` ends it. Resolves
 * with the port on which it says so.
 */
export async function serveDistance(targets: Readonly<Record<string, number>>): Promise<number> {
  const lines = new Map<number, Line>();
  const end = (port: number) => {
    lines.get(port)?.close();
    lines.delete(port);
  };

  async function answer({ method, url = '' }: IncomingMessage): Promise<object | undefined> {
    const name = url.slice(url.lastIndexOf('/') + 1);
    const to = targets[name];
    if (method === 'POST' && to !== undefined) {
      const line = await openLine(to);
      lines.set(line.port, line);
      const [oldest = 0] = lines.keys();
      if (lines.size > MOST_LINES) end(oldest);
      return { port: line.port };
    }
    if (method === 'DELETE') end(Number(name));
    return method === 'DELETE' ? {} : lines.get(Number(name))?.carried;
  }

  const server = createHttpServer((asked, response) => {
    void answer(asked).then((body) => {
      response.writeHead(body ? 200 : 404, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
      response.end(JSON.stringify(body ?? {}));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
