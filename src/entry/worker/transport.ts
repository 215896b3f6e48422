import { type RawAnswer, type Transport, TransportError, type UpstreamRequest } from '../../upstream/transport.ts';

/** Anything that answers requests as `fetch` does: the network, or the sandbox in this isolate. */
export type Fetch = (request: Request) => Promise<Response> | Response;

/** The platform's `fetch`, reading bounded bodies as text; it decodes content codings itself. */
export function fetchTransport(upstream: URL, fetchIt: Fetch): Transport {
  const base = upstream.href.replace(/\/$/, '');
  return async (request) => {
    const response = await begin(base + request.path, request, fetchIt);
    const body = await bodyOf(response, request);
    return { status: response.status, headers: headersOf(response), body };
  };
}

async function begin(
  url: string,
  { method, headers, body, signal }: UpstreamRequest,
  fetchIt: Fetch,
): Promise<Response> {
  signal.throwIfAborted();
  try {
    return await fetchIt(
      new Request(url, { method, headers, signal, redirect: 'manual', ...(body !== undefined && { body }) }),
    );
  } catch (error) {
    signal.throwIfAborted();
    throw new TransportError('broken', error);
  }
}

const headersOf = ({ headers }: Response): RawAnswer['headers'] => Object.fromEntries(headers);

/** Read to its end or cancelled: an unread body holds one of the six connections that a request may have. */
/** Null for a body that cannot be read, or that hangs behind a refusal, which is known by its head. */
async function bodyOf(response: Response, { maxBodyBytes, signal }: UpstreamRequest): Promise<string | null> {
  const reader = response.body?.getReader();
  if (!reader) return '';
  const leave = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await decode(reader, maxBodyBytes);
  } catch {
    return null;
  } finally {
    signal.removeEventListener('abort', leave);
    if (response.status < 400) signal.throwIfAborted();
  }
}

async function decode(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > maxBytes) {
      await reader.cancel().catch(() => undefined);
      throw new RangeError('too large');
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}
