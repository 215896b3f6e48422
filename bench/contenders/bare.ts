import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exampleBody } from '../../test/support/examples.ts';

/** The least that could serve a cached answer: a Map keyed by credential, and the headers that Portico sends too. */
const held = new Map([['Token bench-key', exampleBody('getSubscription')]]);

const server = createServer((request, response) => {
  const body = held.get(request.headers.authorization ?? '');
  if (body === undefined || request.url !== '/api/v2/subscription/') {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Strict-Transport-Security': 'max-age=31536000',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'X-Request-Id': crypto.randomUUID(),
    'Server-Timing': 'upstream;dur=0.0;desc="hit", total;dur=0.1',
    RateLimit: '"account";r=588;t=41',
    'RateLimit-Policy': '"account";q=600;w=60',
    'Cache-Status': 'portico; hit; ttl=29',
    Vary: 'Authorization',
    'Cache-Control': 'private, no-cache',
    ETag: '"gkBZHj7pLwokXMOf1nP0uAFIrsc"',
    Age: '0',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
});

server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
