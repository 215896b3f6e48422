/** What a handler comes back with; the exchange adds the headers that every answer has. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** `Server-Timing` entries besides the total. */
  readonly timing?: string;
}

export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

export function jsonAnswer(body: unknown, headers: Readonly<Record<string, string>> = NO_STORE): Answer {
  return { status: 200, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** On every answer. Pages that need more than nothing bring a `Content-Security-Policy` of their own. */
export const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Strict-Transport-Security': 'max-age=31536000',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
