import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { CallOptions } from '../support/http.ts';
import { varyOf } from '../http/cors.ts';

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** As they came. */
  readonly bytes: Buffer;
  /** Once they are unpacked, where they are packed. */
  readonly text: string;
}

/** One request over a socket, and the bytes of the answer. `accepted`: its `Accept-Encoding`. */
export async function receive(
  url: string,
  { path, method = 'GET', token, headers, body }: CallOptions,
  accepted?: string,
): Promise<Received> {
  const sent = request(new URL(url).origin + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Token ${token}` }),
      ...(accepted !== undefined && { 'accept-encoding': accepted }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
  });
  sent.end(typeof body === 'object' ? JSON.stringify(body) : body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const bytes = Buffer.concat(await answer.toArray());
  const isPacked = answer.headers['content-encoding'] === 'gzip' && bytes.length > 0;
  const text = (isPacked ? gunzipSync(bytes) : bytes).toString();
  return { status: answer.statusCode ?? 0, headers: answer.headers as Received['headers'], bytes, text };
}

export const isPacked = ({ headers }: Pick<Received, 'headers'>) => headers['content-encoding'] === 'gzip';

/** The same answer, packed, with its length. */
export function expectPacked(packed: Received, plain: Received): void {
  expect([packed.status, packed.text]).toEqual([plain.status, plain.text]);
  expect(packed.headers).toMatchObject({
    'content-encoding': 'gzip',
    'content-type': plain.headers['content-type'],
    'content-length': String(packed.bytes.length),
  });
  expect(packed.bytes.length).toBeLessThan(plain.bytes.length);
  expect(packed.headers['etag']).toBe(plain.headers['etag'] && `W/${plain.headers['etag']}`);
  expect(varyOf(packed)).toContain('Accept-Encoding');
}

export function expectPlain(answer: Received): void {
  expect(answer.headers).not.toHaveProperty('content-encoding');
  expect(answer.headers).toMatchObject({ 'content-length': String(answer.bytes.length) });
  expect(answer.headers['etag'] ?? '"').toMatch(/^"/);
}
