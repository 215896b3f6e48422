import type { ServerResponse } from 'node:http';
import { exampleBody } from '../../test/support/examples.ts';

/** Of every answer that Portico gives: what changes not. */
const FIXED = [
  ['X-Content-Type-Options', 'nosniff'],
  ['Strict-Transport-Security', 'max-age=31536000'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['RateLimit-Policy', '"account";q=1000000000;w=60'],
  ['Vary', 'Authorization'],
  ['Content-Type', 'application/json'],
].flat();

interface Plain {
  readonly status: number;
  readonly body: Buffer;
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  readonly beganAt: number;
}

/** An answer with all headers that Portico's has; those in `headers` are the ones that depend on what it is. */
export function answer(response: ServerResponse, { status, body, headers, beganAt }: Plain): void {
  const timing = `total;dur=${(performance.now() - beganAt).toFixed(1)}`;
  response.writeHead(status, [
    ...FIXED,
    'X-Request-Id',
    crypto.randomUUID(),
    'Server-Timing',
    timing,
    ...headers,
    'Content-Length',
    String(body.length),
  ]);
  response.end(body);
}

const BYTES = 1_200;
const rest = exampleBody('getSubscription').slice(1);

/** A subscription of 1.2 KB. */
export const subscription: Buffer = Buffer.from(
  `{"x_pad":"${'k'.repeat(BYTES - Buffer.byteLength(rest) - '{"x_pad":"",'.length)}",${rest}`,
);
