import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { App } from '../../../app.ts';
import { type ErrorCode, GatewayError } from '../../../core/errors.ts';
import type { Inbound } from '../../../core/inbound.ts';
import { valueOf } from './head.ts';
import { lastOf } from './pipeline.ts';

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_INVALID_METHOD: 'method_not_implemented',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** How long a client may take to read the refusal. Closed at once, a reset would overtake the answer. */
const LINGER_MS = 1_000;

interface ParseError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
}

/** Answers what Node's parser cannot parse: it never becomes a request, so the problem is written to the socket. */
export const refuseUnparsable =
  (app: Pick<App, 'refuse'>) =>
  ({ code = '', rawPacket }: ParseError, socket: Duplex): void => {
    const open = openTo(socket);
    if (!socket.writable || code === 'ECONNRESET' || !open) return void socket.destroy();
    const head = rawPacket?.toString('latin1') ?? '';
    // A request with a broken body has a log line already: for the app, its client has left.
    const isLogged = open !== 'head';
    refuse(socket, { app, code: codeOf(code, head), isLogged, ...(isLogged ? headOf(open.req) : foundIn(head)) });
  };

export const refuseConnect = (app: Pick<App, 'refuse'>) => (incoming: IncomingMessage, socket: Duplex) => {
  socket.on('error', () => socket.destroy());
  refuse(socket, { app, code: 'method_not_implemented', ...headOf(incoming) });
};

/** A path with invalid bytes is an unknown endpoint; elsewhere in the target they make a bad request. */
function codeOf(code: string, head: string): ErrorCode {
  const isBadPath = code === 'HPE_INVALID_URL' && /^[A-Z]+ \/[\x21-\x3e\x40-\x7e]*[^\x21-\x7e]/.test(head);
  return isBadPath ? 'unknown_endpoint' : (CODES[code] ?? 'bad_request');
}

/**
 * What a refusal would answer: a head, if all requests before it are answered, or a request without an answer yet whose
 * body is broken. Undefined otherwise: the client would take the refusal for the answer to another request.
 */
function openTo(socket: Duplex): 'head' | ServerResponse | undefined {
  const last = lastOf(socket as Socket);
  if (!last) return 'head';
  const { answer, isNext } = last;
  if (answer.req.complete) return answer.writableFinished ? 'head' : undefined;
  return isNext && !answer.headersSent ? answer : undefined;
}

type Head = Pick<Inbound, 'method' | 'header'>;

const headOf = ({ method = '', rawHeaders }: IncomingMessage): Head => ({
  method,
  header: (name) => valueOf(name, rawHeaders),
});

/** For a head that was not parsed to its end: `head` is the bytes that came last. */
const foundIn = (head: string): Head => ({
  method: head.startsWith('HEAD ') ? 'HEAD' : '',
  header: (name) => (name === 'origin' ? /\nOrigin:[ \t]*(\S+)/i.exec(head)?.[1] : undefined),
});

interface Refused extends Head {
  readonly app: Pick<App, 'refuse'>;
  readonly code: ErrorCode;
  readonly isLogged?: boolean;
}

function refuse(socket: Duplex, { app, code, isLogged, ...head }: Refused): void {
  const { status, headers, body } = app.refuse({ ...NOWHERE, ...head }, GatewayError.of(code), isLogged);
  const text = typeof body === 'string' ? body : '';
  headers.push('Content-Length', String(Buffer.byteLength(text)), 'Connection', 'close');
  let answer = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
  for (let at = 0; at < headers.length; at += 2) answer += `${headers[at]}: ${headers[at + 1]}\r\n`;
  socket.end(`${answer}\r\n${head.method === 'HEAD' ? '' : text}`);
  const leave = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(leave));
}

const nothing = () => undefined;
const NOWHERE = { path: '/', query: '', body: null, origin: '', address: '', waitUntil: nothing, onLeave: nothing };
