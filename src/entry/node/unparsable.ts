import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, GatewayError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { SECURITY_HEADERS } from '../../http/answer.ts';
import { problemAnswer } from '../../http/conduct.ts';

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_INVALID_METHOD: 'method_not_implemented',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

interface ParseError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
}

/** Nothing is at a path with bytes that no path has; elsewhere in a target they are a malformed request. */
function codeOf({ code = '', rawPacket }: ParseError): ErrorCode {
  const head = rawPacket?.toString('latin1') ?? '';
  const isBadPath = code === 'HPE_INVALID_URL' && /^[A-Z]+ \/[\x21-\x3e\x40-\x7e]*[^\x21-\x7e]/.test(head);
  return isBadPath ? 'unknown_endpoint' : (CODES[code] ?? 'bad_request');
}

const asksForHead = ({ rawPacket }: ParseError) => rawPacket?.subarray(0, 5).toString('latin1') === 'HEAD ';

/** What Node's parser gives up on never becomes a request; it gets its problem straight on the socket. */
export const refuseUnparsable = (logger: Logger) => (error: ParseError, socket: Duplex) => {
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) socket.destroy();
  else refuse(socket, codeOf(error), { logger, isHead: asksForHead(error) });
};

export const refuseConnect = (logger: Logger) => (_: IncomingMessage, socket: Duplex) => {
  socket.on('error', () => socket.destroy());
  refuse(socket, 'method_not_implemented', { logger, isHead: false });
};

/** What goes wrong in the body of a request is its answer; behind a whole request, it would be taken for that one's. */
function isAnswering(socket: Duplex & { _httpMessage?: ServerResponse | null }): boolean {
  // oxlint-disable-next-line no-underscore-dangle -- Node shows it nowhere else
  const message = socket._httpMessage;
  return message ? message.headersSent || message.req.complete : false;
}

function refuse(socket: Duplex, code: ErrorCode, { logger, isHead }: { logger: Logger; isHead: boolean }): void {
  const requestId = crypto.randomUUID();
  const { status, headers, body } = problemAnswer(GatewayError.of(code), { instance: '/', requestId });
  logger.info({ request_id: requestId, route: '(none)', status, code }, 'request');
  const text = typeof body === 'string' ? body : '';
  const all = {
    ...SECURITY_HEADERS,
    'X-Request-Id': requestId,
    ...headers,
    'Content-Length': Buffer.byteLength(text),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${isHead ? '' : text}`);
}
