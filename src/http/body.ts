import { GatewayError } from '../core/errors.ts';
import { ClientLeft } from '../upstream/caller.ts';

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/** In UTF-8, as JSON is (RFC 8259 section 8.1). */
const isJsonType = (type: string) =>
  JSON_TYPE.test(type) && (CHARSET.exec(type)?.[1] ?? 'utf-8').toLowerCase() === 'utf-8';

interface BodyOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Where no body is expected, one that comes all the same may be of any type. */
  readonly typed: boolean;
}

/**
 * The JSON text of a request body, bounded while it is read; undefined when there is none.
 * @throws GatewayError `payload_too_large`, `unsupported_media_type`, `malformed_json` for bytes that are not UTF-8
 */
export async function jsonTextOf(request: Request, options: BodyOptions): Promise<string | undefined> {
  const bytes = await bytesOf(request, options);
  if (bytes.length === 0 || !options.typed) return undefined;
  const coding = request.headers.get('content-encoding') ?? 'identity';
  if (coding !== 'identity' || !isJsonType(request.headers.get('content-type') ?? ''))
    throw GatewayError.of('unsupported_media_type');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw GatewayError.of('malformed_json', { detail: 'The body is not UTF-8.' });
  }
}

async function bytesOf(request: Request, { maxBytes, signal }: BodyOptions): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw GatewayError.of('payload_too_large');
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  const leave = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await gather(reader, maxBytes);
  } catch (error) {
    throw error instanceof GatewayError ? error : new ClientLeft();
  } finally {
    signal.removeEventListener('abort', leave);
    signal.throwIfAborted();
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
  return joined(chunks, size);
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}
