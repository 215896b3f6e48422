import type { ServerResponse } from 'node:http';

const SWEEP_MS = 1_000;

/**
 * Cuts off clients who take nothing of an answer that is under way for `stalledAfterMs`, twice that at most. Node's
 * socket timeout knows what still moves, however slowly; it is set in sweeps, so that answers that flow pay nothing.
 * @returns what ends the sweeps
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

/** With nothing to be read, it is the client who waits: for the rest of a stream. */
function cutOrWait({ socket }: ServerResponse, stalledAfterMs: number): void {
  if (socket && socket.writableLength > 0) socket.destroy();
  else socket?.setTimeout(stalledAfterMs);
}
