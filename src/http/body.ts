import { bodyLimit } from 'hono/body-limit';
import { GatewayError } from '../core/errors.ts';
import { invalid } from '../upstream/input.ts';
import type { HonoRequest, HttpDeps } from './request.ts';

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** @throws GatewayError `validation_failed` for a key that cannot be one */
export function checkIdempotencyKey(key: string | undefined): void {
  if (key === undefined || IDEMPOTENCY_KEY.test(key)) return;
  const message = 'expected 1 to 255 visible ASCII characters';
  throw invalid([{ code: 'invalid_format', message, field: 'Idempotency-Key' }]);
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/** JSON in UTF-8, the only charset it may have (RFC 8259 section 8.1). */
const isJsonType = (type: string) => JSON_TYPE.test(type) && /^utf-?8$/i.test(CHARSET.exec(type)?.[1] ?? 'utf-8'); // `utf8` is an alias in common use

export const hasJsonType = (request: HonoRequest): boolean =>
  (request.header('content-encoding') ?? 'identity') === 'identity' && isJsonType(request.header('content-type') ?? '');

/**
 * The JSON text of a request body; undefined when there is none.
 * @throws GatewayError `payload_too_large`, `unsupported_media_type`, `request_timeout`, and `malformed_json` for bytes that are not UTF-8
 */
export async function jsonTextOf(request: HonoRequest): Promise<string | undefined> {
  const bytes = await inTime(request, () => request.body());
  if (bytes.byteLength === 0) return undefined;
  if (!hasJsonType(request)) throw GatewayError.of('unsupported_media_type');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw GatewayError.of('malformed_json', { detail: 'The body is not UTF-8.' });
  }
}

/**
 * A body that the operation does not take. Writes are only compared by it: each byte is one character of the text.
 * @throws GatewayError `payload_too_large`, `request_timeout`
 */
export async function ignoredBodyOf(request: HonoRequest): Promise<string> {
  return new TextDecoder('latin1').decode(await inTime(request, () => request.body()));
}

/** Refuses bodies of more than `maxSize` bytes: by their length unread. Of one that comes in chunks it reads no more than that. */
export function limitBody(maxSize: number): NonNullable<HttpDeps['limitBody']> {
  const limit: NonNullable<HttpDeps['limitBody']> = bodyLimit({ maxSize, onError: tooLarge });
  // It begins to read before it looks at the length, and who waits for a 100 would be told to go on.
  return (c, next) => (Number(c.req.header('content-length')) > maxSize ? tooLarge() : limit(c, next));
}

const tooLarge = (): never => {
  throw GatewayError.of('payload_too_large');
};

/** Reads the body within the request's time. @throws GatewayError `request_timeout`; ClientLeft; what `read` throws */
async function inTime<T>({ abortable }: HonoRequest, read: () => Promise<T>): Promise<T> {
  const over = Promise.withResolvers<never>();
  const stopListening = abortable.onAbort(over.reject);
  try {
    return await Promise.race([abortable.isAborted ? over.promise : read(), over.promise]);
  } catch (error) {
    if (!abortable.isAborted) throw error;
    throw abortable.reason instanceof GatewayError ? GatewayError.of('request_timeout') : abortable.reason;
  } finally {
    stopListening();
  }
}
