import { type Body, noAnswer, type RawAnswer, type Transport, type UpstreamRequest } from '../../upstream/transport.ts';

/** Anything that answers requests as `fetch` does: the network, or the sandbox in this isolate. */
export type Fetch = (request: Request) => Promise<Response> | Response;

/** The platform's `fetch`, reading bounded bodies as text; it decodes content codings itself. */
export function fetchTransport(upstream: URL, fetchIt: Fetch): Transport {
  const base = upstream.href.replace(/\/$/, '');
  const exchange = async (request: UpstreamRequest, signal: AbortSignal): Promise<RawAnswer> => {
    request.beforeFirstByte?.();
    try {
      const response = await fetchIt(requestOf(base, request, signal));
      const { status, headers } = response;
      return { status, headers: Object.fromEntries(headers), body: await bodyOf(response, request, signal) };
    } catch (error) {
      signal.throwIfAborted();
      throw noAnswer('broken', 'unreachable', error);
    }
  };
  return (request) => {
    const controller = new AbortController();
    return { answer: exchange(request, controller.signal), abort: (reason) => controller.abort(reason) };
  };
}

function requestOf(base: string, { method, path, headers, body }: UpstreamRequest, signal: AbortSignal): Request {
  const sent = new Headers();
  for (let at = 0; at < headers.length; at += 2) sent.append(headers[at] ?? '', headers[at + 1] ?? '');
  return new Request(base + path, { method, headers: sent, body: body ?? null, signal, redirect: 'manual' });
}

/**
 * Reads the body to its end or cancels it: an unread one keeps one of the six connections that a request may have. A body
 * that hangs after a 4xx or 5xx counts as cut short: the status is known already.
 */
async function bodyOf(response: Response, { maxBodyBytes }: UpstreamRequest, signal: AbortSignal): Promise<Body> {
  const reader = response.body?.getReader();
  if (!reader) return { text: '' };
  const leave = (reason: unknown) => void reader.cancel(reason).catch(() => undefined);
  const left = () => leave(signal.reason);
  if (signal.aborted) left();
  else signal.addEventListener('abort', left);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let size = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.length;
      if (size > maxBodyBytes) {
        leave(new Error('too large'));
        return { flaw: 'too_large' };
      }
      text += decoder.decode(part.value, { stream: true });
    }
    text += decoder.decode();
    return signal.aborted ? { flaw: 'cut_short' } : { text }; // what is cancelled ends as if it were whole
  } catch (error) {
    leave(error);
    // The decoder throws a TypeError for what is not UTF-8; the platform any error for a stream that broke.
    return { flaw: error instanceof TypeError ? 'charset' : 'cut_short' };
  } finally {
    signal.removeEventListener('abort', left);
    if (response.status < 400) signal.throwIfAborted();
  }
}
