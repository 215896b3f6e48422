import { onAbort } from '../core/abort.ts';
import { GatewayError } from '../core/errors.ts';
import type { Inbound } from '../core/inbound.ts';
import { ClientLeft } from '../upstream/request-context.ts';
import type { Context } from './context.ts';

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/** JSON in UTF-8, the only charset it may have (RFC 8259 section 8.1). */
const isJsonType = (type: string) =>
  JSON_TYPE.test(type) && (CHARSET.exec(type)?.[1] ?? 'utf-8').toLowerCase() === 'utf-8';

export const hasJsonType = (inbound: Inbound): boolean =>
  (inbound.header('content-encoding') ?? 'identity') === 'identity' && isJsonType(inbound.header('content-type') ?? '');

/**
 * The JSON text of a request body; undefined when there is none.
 * @throws GatewayError also `unsupported_media_type`, and `malformed_json` for bytes that are not UTF-8
 */
export async function jsonTextOf(context: Context): Promise<string | undefined> {
  const bytes = await bytesOf(context);
  const { inbound } = context;
  if (bytes.length === 0) return undefined;
  if (!hasJsonType(inbound)) throw GatewayError.of('unsupported_media_type');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw GatewayError.of('malformed_json', { detail: 'The body is not UTF-8.' });
  }
}

/** A body that the operation does not take, only to compare requests by: its characters are the bytes. */
export async function unreadTextOf(context: Context): Promise<string> {
  return new TextDecoder('latin1').decode(await bytesOf(context));
}

/**
 * A request body, bounded while it is read.
 * @throws GatewayError `payload_too_large`, `request_timeout`
 */
export async function bytesOf({ inbound, maxBodyBytes, signal }: Context): Promise<Uint8Array> {
  const { body } = inbound;
  if (Number(inbound.header('content-length') ?? 0) > maxBodyBytes) throw GatewayError.of('payload_too_large');
  if (!body) return new Uint8Array();
  const reader = body.getReader();
  const leave = (reason: unknown) => void reader.cancel(reason).catch(() => undefined);
  const stay = onAbort(signal, leave);
  try {
    const bytes = await gather(reader, maxBodyBytes);
    signal.throwIfAborted();
    return bytes;
  } catch (error) {
    if (signal.reason instanceof GatewayError) throw GatewayError.of('request_timeout');
    throw error instanceof GatewayError ? error : new ClientLeft();
  } finally {
    stay();
  }
}

async function gather(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > maxBytes) {
      void reader.cancel().catch(() => undefined);
      throw GatewayError.of('payload_too_large');
    }
    chunks.push(part.value);
  }
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}
