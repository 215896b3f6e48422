import { IncomingMessage } from 'node:http';
import type { Head } from '../../../middleware/request.ts';
import { MessageHead } from './guard.ts';

const SERVED = Symbol('the request that the app was given');

type Served = IncomingMessage & { [SERVED]?: Request };

/** Notes which `Request` stands for a message. */
export function note(env: object, request: Request): void {
  const incoming = incomingIn(env);
  if (incoming) incoming[SERVED] = request;
}

/** The message in what @hono/node-server passes with a request. */
const incomingIn = (env: object): Served | undefined =>
  'incoming' in env && env.incoming instanceof IncomingMessage ? env.incoming : undefined;

/** The address at the other end of the connection. */
export const peerIn = (env: object): string | undefined => incomingIn(env)?.socket.remoteAddress;

/** The head of a message, read at a fifth of what the `Request` takes; undefined where another `Request` is in its place. */
export function noted(env: object, request: Request): Head | undefined {
  const incoming = incomingIn(env);
  return incoming?.[SERVED] === request ? new MessageHead(incoming, request.url) : undefined;
}
