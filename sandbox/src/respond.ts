import type { Answer } from './call.ts';
import type { Refusal } from './errors.ts';
import { type OperationId, operations } from './operations.ts';
import { print } from './resource.ts';

/** Headers of every answer, which a gateway should not pass on. */
const OWN_HEADERS = { Server: 'sandbox', 'X-Frame-Options': 'DENY' };

const JSON_HEADERS = { ...OWN_HEADERS, 'Content-Type': 'application/json', Vary: 'Accept' };

export function send(operation: OperationId, { body, status }: Answer): Response {
  const schema = operations[operation].answer;
  if (schema === null) return new Response(null, { status, headers: OWN_HEADERS });
  return new Response(print(schema, body), { status, headers: JSON_HEADERS });
}

export function refuse({ body, headers, status }: Refusal): Response {
  return new Response(JSON.stringify(body), { status, headers: { ...JSON_HEADERS, ...headers } });
}

/** What the web server answers where the application has nothing: HTML. */
export const pageNotFound = (): Response =>
  new Response(
    '<!doctype html>\n<html lang="en"><head><title>Not Found</title></head><body><h1>Not Found</h1></body></html>\n',
    {
      status: 404,
      headers: { ...OWN_HEADERS, 'Content-Type': 'text/html; charset=utf-8' },
    },
  );
