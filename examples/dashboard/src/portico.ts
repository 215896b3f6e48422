import { createClient } from 'portico-client';
import { notedFetch } from './gateway-log.ts';

/** Told whenever the gateway says 401: there is no session, or not any more. */
export const unauthenticated = new EventTarget();

async function fetchAndTell(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await notedFetch(input, init);
  if (response.status === 401) unauthenticated.dispatchEvent(new Event('401'));
  return response;
}

/** No address and no key: the gateway is on the page's own origin, and the browser sends its cookie. */
export const portico = createClient({ fetch: fetchAndTell });
