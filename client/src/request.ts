import type { CallOptions } from './types.ts';

/** What goes over the wire, but for the credential. */
export interface Wire {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: string | undefined;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  /** Whether it changes nothing, so that it may be sent again. */
  readonly isRead: boolean;
}

/** `route`: method and path. Puts input into path, query and body, and options into headers. */
export function wireOf(route: string, input: object | undefined, options: CallOptions = {}): Wire {
  const [method = '', template = ''] = route.split(' ');
  const rest: Record<string, unknown> = { ...input };
  const path = template.replace('?', '').replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(rest[name]));
    delete rest[name];
    return value;
  });
  const takesBody = method.startsWith('P') && !template.endsWith('?');
  const body = takesBody && input ? JSON.stringify(rest) : undefined;
  const { query: extra = {} } = options;
  const query = pairsOf(takesBody ? {} : rest)
    .concat(typeof extra === 'string' ? extra : pairsOf(extra))
    .filter(Boolean)
    .join('&');
  return {
    method,
    path: query ? `${path}?${query}` : path,
    body,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(options.fresh && { 'cache-control': 'no-cache' }),
      ...(options.strict && { prefer: 'handling=strict' }),
      ...(options.idempotencyKey && { 'idempotency-key': options.idempotencyKey }),
      ...lowerCased(options.headers),
    },
    isRead: method === 'GET' || template === '/bff/v1/batch',
  };
}

/** A name that stands there in two ways would be two headers, which are sent joined. */
export const lowerCased = (headers: CallOptions['headers'] = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** `{ a: [1, 2], b: { c: 3 } }` is `a=1,2` and `b[c]=3`. What is undefined is left out. */
const pairsOf = (values: object, before = '', after = ''): string[] =>
  Object.entries(values).flatMap(([key, value]) => {
    const name = before + key + after;
    if (isRecord(value)) return pairsOf(value, `${name}[`, ']');
    return value === undefined ? [] : `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`;
  });

export const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
