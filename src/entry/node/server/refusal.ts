import type { GatewayError } from '../../../core/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import { problemAnswer, SECURITY_HEADERS } from '../../../http/answer.ts';
import type { Cors } from '../../../http/cors.ts';

interface RefusalContext {
  /** Absent if the request has a log line already. */
  readonly logger?: Logger | undefined;
  readonly requestId: string;
  /** Path of the request, and its method, where there was one. */
  readonly instance: string;
  readonly method?: string;
  readonly cors?: Cors | undefined;
  /** Origin of the page that sent the request, if known. */
  readonly origin?: string | undefined;
}

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly text: string;
}

/** A problem that the app never sees, with the headers that every answer has and the log line of every request. */
export function refusal(
  error: GatewayError,
  { logger, requestId, instance, method, cors, origin }: RefusalContext,
): Refusal {
  const { status, headers, body } = problemAnswer(error, { instance, requestId });
  logger?.request({ request_id: requestId, method, route: '(none)', status, code: error.code });
  const text = typeof body === 'string' ? body : '';
  const all: Record<string, string | number> = {
    ...SECURITY_HEADERS,
    'X-Request-Id': requestId,
    ...headers,
    'Content-Length': Buffer.byteLength(text),
  };
  return { status, headers: cors ? cors.added(all, origin) : all, text };
}
