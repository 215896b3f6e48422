import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Ports for upstreams, doors and processes, below those that the system gives out. Each test process has a range of its
 * own and goes through it in order: a port that a test has closed is not used again soon, so that late calls to it reach
 * nobody.
 */
const FIRST = 12_000 + 1_000 * (Number(process.env['VITEST_POOL_ID'] ?? 1) % 20);
const COUNT = 1_000;

let next = process.pid % COUNT;

/** Listens on that port, or where none is given on the next one that is free. */
export async function listenLocally(server: Server, wanted = 0): Promise<number> {
  for (let tried = 0; tried < COUNT; tried++) {
    const port = wanted || FIRST + (next++ % COUNT);
    server.listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
      return port;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') || wanted) throw error;
    }
  }
  throw new Error('no port is free');
}

/** For a process, which listens on it soon. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenLocally(server);
  const closed = once(server, 'close');
  server.close();
  await closed;
  return port;
}
