import { hash } from 'node:crypto';
import { createServer } from 'node:http';
import { answer, subscription } from './plain-answers.ts';

/**
 * The least that could serve a cached answer: a Map by the hash of the credential, and the headers that Portico sends
 * too, with what changes in them.
 */
interface Held {
  readonly body: Buffer;
  readonly etag: string;
  readonly storedAt: number;
  used: number;
}

const FRESH_SECONDS = 3_600;
const held = new Map<string, Held>();

function heldFor(credential: string, url: string): Held {
  const key = hash('sha256', credential, 'base64url') + url;
  const known = held.get(key);
  if (known) return known;
  const etag = `"${hash('sha256', subscription, 'base64url')}"`;
  const made = { body: subscription, etag, storedAt: performance.now(), used: 0 };
  held.set(key, made);
  return made;
}

function varying({ etag, used }: Held, age: number): readonly string[] {
  return [
    'RateLimit',
    `"account";r=${1e9 - used};t=${60 - (age % 60)}`,
    'Cache-Status',
    `portico; hit; ttl=${FRESH_SECONDS - age}`,
    'Cache-Control',
    'private, no-cache',
    'Age',
    String(age),
    'ETag',
    etag,
  ];
}

const server = createServer({ keepAliveTimeout: 60_000 }, ({ headers, url = '' }, response) => {
  const beganAt = performance.now();
  const entry = heldFor(headers.authorization ?? '', url);
  entry.used++;
  answer(response, {
    status: 200,
    body: entry.body,
    headers: varying(entry, Math.floor((beganAt - entry.storedAt) / 1_000)),
    beganAt,
  });
});

server.listen(Number(process.env['PORT']), '127.0.0.1');
