import {
  type Body,
  type BodyFlaw,
  type RawAnswer,
  type Transport,
  TransportError,
  type UpstreamRequest,
} from '../../upstream/transport.ts';

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
  { method, headers, body, cancellation, beforeFirstByte }: UpstreamRequest,
  fetchIt: Fetch,
): Promise<Response> {
  cancellation.throwIfCancelled();
  beforeFirstByte?.();
  const ends = new AbortController();
  const end = (reason: unknown) => ends.abort(reason);
  cancellation.on(end);
  const { signal } = ends;
  const sent = {
    method,
    headers: pairsOf(headers),
    signal,
    redirect: 'manual',
    ...(body !== undefined && { body }),
  } as const;
  try {
    return await fetchIt(new Request(url, sent));
  } catch (error) {
    cancellation.throwIfCancelled();
    throw new TransportError('broken', error);
  }
}

function pairsOf(headers: readonly string[]): Headers {
  const pairs = new Headers();
  for (let at = 0; at < headers.length; at += 2) pairs.append(headers[at] ?? '', headers[at + 1] ?? '');
  return pairs;
}

const headersOf = ({ headers }: Response): RawAnswer['headers'] => Object.fromEntries(headers);

/**
 * Reads the body to its end or cancels it: an unread one keeps one of the six connections that a request may have. A body
 * that hangs after a 4xx or 5xx counts as cut short: the status is known already.
 */
async function bodyOf(response: Response, { maxBodyBytes, cancellation }: UpstreamRequest): Promise<Body> {
  const reader = response.body?.getReader();
  if (!reader) return { text: '' };
  const leave = (reason: unknown) => void reader.cancel(reason).catch(() => undefined);
  cancellation.on(leave);
  try {
    return { text: await decode(reader, maxBodyBytes) };
  } catch (error) {
    return { flaw: flawOf(error) };
  } finally {
    cancellation.off(leave);
    if (response.status < 400) cancellation.throwIfCancelled();
  }
}

/** The decoder throws a TypeError for what is not UTF-8; the platform any error for a stream that broke. */
function flawOf(error: unknown): BodyFlaw {
  if (error instanceof RangeError) return 'too_large';
  return error instanceof TypeError ? 'charset' : 'cut_short';
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
