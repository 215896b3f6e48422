import { readFileSync } from 'node:fs';

/** Where the system does not tell. */
const USUAL_DESCRIPTORS = 4_096;

/** For the log, the store, the admin listener and the sockets that listen. */
const OTHER_DESCRIPTORS = 128;

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
