import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { call, UNKEPT } from './calls.ts';
import { answer } from './plain-answers.ts';

/** The least that could pass requests on: undici's dispatch behind `node:http`, and the headers that Portico sends too. */
const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => void pass(request, response));

async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const beganAt = performance.now();
  const { method = '', url = '', headers } = request;
  const sent = ['authorization', headers.authorization ?? '', 'accept', 'application/json'];
  const body = method === 'GET' ? undefined : await bodyOf(request);
  const type = body ? ['content-type', 'application/json', 'idempotency-key', String(headers['idempotency-key'])] : [];
  const called = await call({ method, path: url, headers: [...sent, ...type], ...(body && { body }) });
  answer(response, { ...called, headers: UNKEPT, beganAt });
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

server.listen(Number(process.env['PORT']), '127.0.0.1');
