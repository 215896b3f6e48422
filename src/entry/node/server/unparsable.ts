import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ErrorCode, GatewayError } from '../../../core/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import type { Cors } from '../../../http/cors.ts';
import { lastOf } from './pipeline.ts';
import { refusal } from './refusal.ts';

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

/** A path with invalid bytes is an unknown endpoint; elsewhere in the target they make a bad request. */
function codeOf({ code = '', rawPacket }: ParseError): ErrorCode {
  const head = rawPacket?.toString('latin1') ?? '';
  const isBadPath = code === 'HPE_INVALID_URL' && /^[A-Z]+ \/[\x21-\x3e\x40-\x7e]*[^\x21-\x7e]/.test(head);
  return isBadPath ? 'unknown_endpoint' : (CODES[code] ?? 'bad_request');
}

const asksForHead = ({ rawPacket }: ParseError) => rawPacket?.subarray(0, 5).toString('latin1') === 'HEAD ';

/** The head was not parsed to its end, so this looks in the bytes that came last. */
const originIn = ({ rawPacket }: ParseError) => /\nOrigin:[ \t]*(\S+)/i.exec(rawPacket?.toString('latin1') ?? '')?.[1];

interface Tools {
  readonly logger: Logger;
  readonly cors?: Cors | undefined;
}

/** Answers what Node's parser cannot parse: it never becomes a request, so the problem is written to the socket. */
export const refuseUnparsable =
  ({ logger, cors }: Tools) =>
  (error: ParseError, socket: Duplex) => {
    const open = openTo(socket);
    if (!socket.writable || error.code === 'ECONNRESET' || !open) return void socket.destroy();
    if (open === 'head') {
      return refuse(socket, codeOf(error), { isHead: asksForHead(error), cors, origin: originIn(error), logger });
    }
    // A request with a broken body has a log line already: for the app, its client has left.
    const { method, headers } = open.req;
    refuse(socket, codeOf(error), { isHead: method === 'HEAD', cors, origin: headers.origin });
  };

export const refuseConnect =
  (tools: Tools) =>
  ({ headers }: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    refuse(socket, 'method_not_implemented', { ...tools, origin: headers.origin, isHead: false });
  };

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

interface RefuseOptions {
  readonly logger?: Logger;
  readonly cors?: Cors | undefined;
  readonly origin: string | undefined;
  readonly isHead: boolean;
}

function refuse(socket: Duplex, code: ErrorCode, { isHead, ...context }: RefuseOptions): void {
  const requestId = crypto.randomUUID();
  const { status, headers, text } = refusal(GatewayError.of(code), { ...context, requestId, instance: '/' });
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${isHead ? '' : text}`);
  const leave = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(leave));
}
