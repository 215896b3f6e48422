import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, GatewayError } from '../../core/errors.ts';
import { SECURITY_HEADERS } from '../../http/answer.ts';
import { problemAnswer } from '../../http/conduct.ts';

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_INVALID_METHOD: 'method_not_implemented',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** What Node's parser gives up on never becomes a request; it gets its problem straight on the socket. */
export function refuseUnparsable(error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) socket.destroy();
  else refuse(socket, CODES[error.code ?? ''] ?? 'bad_request');
}

export function refuseConnect(_: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  refuse(socket, 'method_not_implemented');
}

/** What goes wrong in the body of a request is its answer; behind a whole request, it would be taken for that one's. */
function isAnswering(socket: Duplex & { _httpMessage?: ServerResponse | null }): boolean {
  // oxlint-disable-next-line no-underscore-dangle -- Node shows it nowhere else
  const message = socket._httpMessage;
  return message ? message.headersSent || message.req.complete : false;
}

function refuse(socket: Duplex, code: ErrorCode): void {
  const requestId = crypto.randomUUID();
  const { status, headers, body } = problemAnswer(GatewayError.of(code), { instance: '/', requestId });
  const text = typeof body === 'string' ? body : '';
  const all = {
    ...SECURITY_HEADERS,
    'X-Request-Id': requestId,
    ...headers,
    'Content-Length': Buffer.byteLength(text),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`);
}
