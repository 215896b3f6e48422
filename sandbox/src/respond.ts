import type { OperationId } from './operations.ts';
import type { Answer } from './call.ts';
import type { Refusal } from './errors.ts';
import { printJson } from './json.ts';

/** Headers of every answer, which a gateway should not pass on. */
const OWN_HEADERS = { Server: 'sandbox', 'X-Frame-Options': 'DENY' };

const JSON_HEADERS = { ...OWN_HEADERS, 'Content-Type': 'application/json', Vary: 'Accept' };

export function send(operation: OperationId, { body, status }: Answer): Response {
  const headers = { ...(status === 204 ? OWN_HEADERS : JSON_HEADERS), 'X-Sandbox-Operation': operation };
  return new Response(status === 204 ? null : printJson(body), { status, headers });
}

export function refuse({ body, headers, status }: Refusal): Response {
  return new Response(printJson(body), { status, headers: { ...JSON_HEADERS, ...headers } });
}

/** What the web server answers where the application has nothing: HTML. */
export function page(status: number, title: string): Response {
  const html = `<!doctype html>\n<html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`;
  return new Response(html, { status, headers: { ...OWN_HEADERS, 'Content-Type': 'text/html; charset=utf-8' } });
}
