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
  let start: AnswerStart | undefined;
  const pass = (chunk: Buffer) => {
    const rest = start ? start.take(chunk) : chunk;
    if (rest) start = undefined;
    else if (start?.isTooLong) socket.destroy(new Error('bad response'));
    return rest;
  };
  Object.assign(socket, {
    write(...args: unknown[]) {
      start = new AnswerStart();
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

class AnswerStart {
  #buffered: Buffer = Buffer.alloc(0);
  #leftOut = 0;

  get isTooLong(): boolean {
    return this.#leftOut + this.#buffered.length > MAX_BYTES;
  }

  /** Returns all bytes from the final answer on, once that has begun. */
  take(chunk: Buffer): Buffer | undefined {
    this.#buffered = this.#buffered.length > 0 ? Buffer.concat([this.#buffered, chunk]) : chunk;
    while (this.#isInterim()) {
      const end = this.#buffered.indexOf(END);
      if (end < 0) return undefined;
      this.#leftOut += end + END.length;
      this.#buffered = this.#buffered.subarray(end + END.length);
    }
    return this.#buffered;
  }

  /** Whether what has come so far may be an interim answer. */
  #isInterim(): boolean {
    const start = this.#buffered.toString('latin1', 0, SHORTEST.length);
    return INTERIM.test(start + SHORTEST.slice(start.length));
  }
}
