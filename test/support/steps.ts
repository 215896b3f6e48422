import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Barrier } from './barrier.ts';
import type { Call } from './calls.ts';

/** One call being answered. */
interface Exchange {
  readonly call: Call;
  readonly socket: Socket;
  /** Resolves when the connection is closed, by whichever side. */
  readonly gone: Promise<void>;
}

/** What the upstream does next in answering. A connection that is gone ends the answer: no further step is taken. */
export type Step = (exchange: Exchange) => Promise<void>;

type HeaderPairs = Readonly<Record<string, string>>;

const write = (socket: Socket, bytes: string | Uint8Array) =>
  new Promise<void>((resolve) => {
    // A peer that has left is a case under test, not an error of the script.
    socket.write(bytes, () => resolve());
  });

const bodyText = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body));

/** The bytes of a well-formed JSON answer, to cut up or damage. A string is JSON text, anything else a value. */
export const httpResponse = (status: number, body: unknown, headers: HeaderPairs = {}): Buffer => {
  const bodiless = status === 204 || status === 304;
  const text = bodiless ? '' : bodyText(body);
  const defaults = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) };
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const all: HeaderPairs = { ...(bodiless ? {} : defaults), ...Object.fromEntries(given) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`);
};

/** A whole answer. A string is taken as JSON text and sent as it is. */
export const json =
  (status: number, body: unknown = '', headers: HeaderPairs = {}): Step =>
  ({ socket }) =>
    write(socket, httpResponse(status, body, headers));

/** These very bytes, well-formed or not. */
export const bytes =
  (raw: string | Uint8Array): Step =>
  ({ socket }) =>
    write(socket, raw);

/** Waits at the barrier. */
export const hold =
  (at: Barrier): Step =>
  ({ gone }) =>
    Promise.race([at.arrive(), gone]);

/** Several steps as one answer: `reply(hold(b), json(200, {}))`. */
export const reply =
  (...steps: readonly Step[]): Step =>
  async (exchange) => {
    for (const step of steps) {
      if (exchange.socket.destroyed) return;
      await step(exchange);
    }
  };

/** An answer that depends on the call, for example on whose credential it carries. */
export const perCall =
  (choose: (call: Call) => Step): Step =>
  (exchange) =>
    choose(exchange.call)(exchange);

/** RST. After bytes of a body: wait at a barrier in between if the other side is to have read them. */
export const reset =
  (): Step =>
  async ({ socket, gone }) => {
    socket.resetAndDestroy();
    await gone;
  };

/** FIN, after what was written. */
export const close =
  (): Step =>
  async ({ socket, gone }) => {
    socket.end();
    await gone;
  };

/** No answer, or no more of it, for as long as the other side waits. */
export const hang =
  (): Step =>
  async ({ gone }) =>
    gone;

/** One byte after the other, for as long as the other side waits. */
export const drip =
  (raw: string | Uint8Array, everyMs = 10): Step =>
  async ({ socket, gone }) => {
    for (const byte of Buffer.from(raw)) {
      if (socket.destroyed) return;
      await write(socket, Uint8Array.of(byte));
      await Promise.race([setTimeout(everyMs, undefined, { ref: false }), gone]);
    }
  };

/** The same bytes over and over, as fast as the other side takes them: so many times, or until it leaves. */
export const flood =
  (raw: string | Uint8Array, times = Infinity): Step =>
  async ({ socket }) => {
    for (let sent = 0; sent < times && !socket.destroyed; sent++) await write(socket, raw);
  };

/** Lets the event loop go round, so that a peer in this process has read the little that was written. */
export const letRead = (): Step => async () => {
  for (let turn = 0; turn < 3; turn++) await setImmediate();
};
