import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

/** Of all interim answers before one answer; as much as undici accepts of a head. */
const MAX_BYTES = 16_384;

/** Not `101`: it would answer a request to switch protocols, which is never made. */
const INTERIM = /^HTTP\/1\.[01] 1(?!01)/;
const SHORTEST = 'HTTP/1.1 100';
const END = '\r\n\r\n';

/**
 * Connects as undici does, and hides interim answers from it. A client has to ignore those that it did not ask for (RFC
 * 9110 section 15.2), but undici takes a `100`, and any with `Connection: close` or in HTTP/1.0, for a broken answer.
 */
export function connectorWithoutInterim(timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false });
  return (options, done) =>
    connect(options, (...args) => {
      if (args[1]) leaveOutInterim(args[1]);
      done(...args);
    });
}

/** A connection has one request at a time, so what comes after a write begins with the head of an answer. */
function leaveOutInterim(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  /** What has come of an answer, until its final head begins. */
  let start: Buffer | undefined;
  let leftOut = 0;

  /** Returns all bytes from the final head on. */
  const pass = (chunk: Buffer): Buffer | undefined => {
    let rest = start?.length ? Buffer.concat([start, chunk]) : chunk;
    while (start && mayBeInterim(rest)) {
      start = rest;
      const end = rest.indexOf(END) + END.length;
      if (end < END.length) {
        if (leftOut + rest.length > MAX_BYTES) socket.destroy(new Error('bad response'));
        return undefined;
      }
      leftOut += end;
      rest = rest.subarray(end);
    }
    start = undefined;
    return rest;
  };
  Object.assign(socket, {
    write(...args: unknown[]) {
      start = NOTHING;
      leftOut = 0;
      return write(...args);
    },
    read(size?: number) {
      for (let chunk = read(size); chunk; chunk = read(size)) {
        const rest = pass(chunk);
        if (rest) return rest;
      }
      return null;
    },
  });
}

const NOTHING = Buffer.alloc(0);

function mayBeInterim(bytes: Buffer): boolean {
  const begin = bytes.toString('latin1', 0, SHORTEST.length);
  return INTERIM.test(begin + SHORTEST.slice(begin.length));
}
