import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

/** Ends by itself, whatever becomes of the test. */
const LONGEST_MS = 30_000;
/** A connection on the loopback comes about in a fraction of it, or never. */
const PATIENCE_MS = 50;
const MOST_FILLERS = 64;

/** A thread of its own, since the system accepts for a listener only while its event loop turns. */
const LISTENER = `
  const { createServer } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const server = createServer().listen({ port: workerData.port, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage('listening');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, workerData.ms);
    process.exit();
  });
`;

/**
 * Takes a port and never answers a SYN that comes for it, as a firewall does that drops packets: the listener never
 * accepts, and those who could wait to be accepted are us. Rejects where the system answers all the same.
 */
export async function startBlackhole(port: number): Promise<{ close(): Promise<void> }> {
  const listener = new Worker(LISTENER, { eval: true, workerData: { port, ms: LONGEST_MS } });
  await once(listener, 'message');
  const fillers: Socket[] = [];
  const close = async () => {
    for (const filler of fillers) filler.destroy();
    await listener.terminate();
  };
  for (let isFull = false; !isFull;) {
    if (fillers.length >= MOST_FILLERS) {
      await close();
      throw new Error('a listener that accepts nobody answers all the same');
    }
    const filler = connect(port, '127.0.0.1').on('error', () => {});
    fillers.push(filler);
    isFull = await Promise.race([once(filler, 'connect').then(() => false), setTimeout(PATIENCE_MS, true)]);
  }
  return { close };
}
