import type { CallOptions } from './types.ts';

/** What goes over the wire, but for the credential. */
export interface Wire {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: string | undefined;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it changes nothing, so that it may be sent again. */
  readonly isRead: boolean;
}

/**
 * `route` is a method and a path. Input that is not in the path is the query of a GET or DELETE, and the body of a POST or
 * PATCH, unless a `?` at the end says that it takes no body.
 */
export function wireOf(route: string, input?: object, options: CallOptions = {}): Wire {
  const [method = '', template = '', mark] = route.split(/[ ?]/);
  const rest: Record<string, unknown> = { ...input };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(rest[name]));
    delete rest[name];
    return value;
  });
  const takesBody = method.startsWith('P') && mark === undefined;
  const body = takesBody && input ? JSON.stringify(rest) : undefined;
  const { query = {} } = options;
  const search = pairsOf(takesBody ? {} : rest)
    .concat(typeof query === 'string' ? query : pairsOf(query))
    .filter(Boolean)
    .join('&');
  const isRead = method === 'GET' || template === '/bff/v1/batch';
  return { method, path: search ? `${path}?${search}` : path, body, headers: headersOf(options, body), isRead };
}

/** A name that stands there in two ways would be two headers, which are sent joined. */
export function headersOf({ fresh, strict, idempotencyKey, headers }: CallOptions, body?: string): Wire['headers'] {
  const all = {
    ...(body && { 'content-type': 'application/json' }),
    ...(fresh && { 'cache-control': 'no-cache' }),
    ...(strict && { prefer: 'handling=strict' }),
    ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    ...headers,
  };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
}

/** `{ a: [1, 2], b: { c: 3 } }` is `a=1,2` and `b[c]=3`. What is undefined is left out. */
const pairsOf = (values: object, before = '', after = ''): string[] =>
  Object.entries(values).flatMap(([key, value]) => {
    const name = before + key + after;
    if (isRecord(value)) return pairsOf(value, `${name}[`, ']');
    return value === undefined ? [] : [name, String(value)].map(encodeURIComponent).join('=');
  });

export const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
