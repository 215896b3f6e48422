import { MalformedMessage, takeMessage, type Message } from './http-message.ts';

/** A request that reached the scripted upstream. */
export interface Call extends Pick<Message, 'headers' | 'rawHeaders'> {
  readonly method: string;
  /** As it stood in the request line, query and all. */
  readonly target: string;
  readonly path: string;
  readonly body: string;
  /** Counts from 1; equal for calls that shared a connection. */
  readonly socket: number;
  /** `performance.now()` when the last byte of it was there. */
  readonly at: number;
}

/** `'GET /v1/books'`, where a query counts only if it is given, or a predicate. */
export type Match = string | ((call: Call) => boolean);

export const matcher = (match: Match): ((call: Call) => boolean) => {
  if (typeof match === 'function') return match;
  const [method, target] = match.split(' ');
  return (call: Call) => call.method === method && (call.target === target || call.path === target);
};

const callOf = ({ startLine, headers, rawHeaders, body }: Message, socket: number): Call => {
  const line = /^([A-Z]+) ([!-~]+) HTTP\/1\.1$/.exec(startLine);
  if (!line) throw new MalformedMessage(`request line ${JSON.stringify(startLine)}`);
  const [, method = '', target = ''] = line;
  const [path = ''] = target.split('?');
  return { method, target, path, headers, rawHeaders, body: body.toString(), socket, at: performance.now() };
};

const REQUEST = { kind: 'request' } as const;

const MALFORMED = 'MALFORMED';

export const isMalformed = (call: Call): boolean => call.method === MALFORMED;

/** What `unexpected` shows for bytes that are no request. */
const malformedCall = (reason: string, socket: number): Call => {
  const empty = { headers: {}, rawHeaders: [], body: '' };
  return { ...empty, method: MALFORMED, target: reason, path: reason, socket, at: performance.now() };
};

/** All requests that are complete in the bytes, and the rest. What is no request comes last, as a malformed call. */
export const takeCalls = (bytes: Buffer, socket: number): { calls: readonly Call[]; rest: Buffer } => {
  const calls: Call[] = [];
  let rest = bytes;
  try {
    for (let taken = takeMessage(rest, REQUEST); taken; taken = takeMessage(rest, REQUEST)) {
      calls.push(callOf(taken[0], socket));
      rest = taken[1];
    }
    return { calls, rest };
  } catch (error) {
    if (!(error instanceof MalformedMessage)) throw error;
    return { calls: [...calls, malformedCall(error.message, socket)], rest: Buffer.alloc(0) };
  }
};
