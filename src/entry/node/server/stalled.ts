import type { ServerResponse } from 'node:http';

const SWEEP_MS = 1_000;

/**
 * Cuts off clients that take nothing of their answer for `stalledAfterMs`, or at most twice that. Uses Node's socket
 * timeout, which restarts with every byte sent. It is set in sweeps, so that quick answers do not pay for it.
 * @returns a function that ends the sweeps
 */
export function cutStalled(inFlight: Iterable<ServerResponse>, stalledAfterMs: number): () => void {
  const watched = new WeakSet<ServerResponse>();
  const sweep = () => {
    for (const outgoing of inFlight) {
      if (!outgoing.headersSent || watched.has(outgoing)) continue;
      watched.add(outgoing);
      outgoing.setTimeout(stalledAfterMs, () => cutOrWait(outgoing, stalledAfterMs));
    }
  };
  const timer = setInterval(sweep, Math.min(SWEEP_MS, stalledAfterMs)).unref();
  return () => clearInterval(timer);
}

/** If there is nothing left to send, it is the client that waits, for the rest of a stream. */
function cutOrWait({ socket }: ServerResponse, stalledAfterMs: number): void {
  if (socket && socket.writableLength > 0) socket.destroy();
  else socket?.setTimeout(stalledAfterMs);
}
