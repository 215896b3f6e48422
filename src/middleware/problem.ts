import type { ErrorHandler } from 'hono';
import { ClientLeft, GatewayError } from '../core/errors.ts';
import { CLIENT_LEFT, finish } from './access-log.ts';
import { headersOf, problemAnswer, problemReply } from './reply.ts';
import { ClientRequest, type Env, type Head, type RequestTools } from './request.ts';

/** Every other 5xx has another status. */
const FAULT = 500;

/** The app's `onError`: the one place where errors become answers. */
export const problem: ErrorHandler<Env> = (error, c) => {
  const request = c.get('request');
  if (error instanceof ClientLeft || (!(error instanceof GatewayError) && request.hasLeft)) {
    request.code = 'client_left';
    return new Response(null, { status: CLIENT_LEFT }); // nobody reads it
  }
  const known = error instanceof GatewayError ? error : GatewayError.of('internal_error', { cause: error });
  if (known.status === FAULT) logFault(request, known.cause);
  request.code = known.code;
  return problemReply(c, known);
};

/** A bug of ours. The client gets no details; the log gets the stack. */
function logFault({ requestId, trace, tools: { logger } }: ClientRequest, thrown: unknown): void {
  const fault = thrown instanceof Error ? `${thrown.name} ${framesOf(thrown)}` : typeof thrown;
  logger.error({ request_id: requestId, trace_id: trace.traceId, fault }, 'internal error');
}

/** The stack without the message, which may quote input. */
const framesOf = ({ stack = '' }: Error) =>
  stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .join('\n');

/** An answer that leaves without Hono: headers as they are sent, and the body. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How a server refuses what it does not hand to the app: the same problem, headers and line in the log. */
export const refuser =
  (tools: RequestTools) =>
  (head: Head, error: GatewayError): Refusal => {
    const request = new ClientRequest(head, { name: '(none)' }, tools);
    const answer = problemAnswer(request, error);
    request.code = error.code;
    finish(request, error.status);
    return { status: error.status, headers: headersOf(request, answer), body: answer.body };
  };
