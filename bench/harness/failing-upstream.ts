import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allOperations, matchPath } from '../../test/support/account-api.ts';
import type { Method } from '../../src/upstream/operation.ts';
import { exampleBody } from '../../test/support/examples.ts';

/** An upstream that fails a call when its query says so: `fault`. Prints its URL. */
const SLOW_MS = 200;
const LARGE_LABEL = 'k'.repeat(24_000);

const bodies = new Map<string, string>(
  allOperations.map(({ id }) => [id, exampleBody(id, id === 'createApiKey' ? { label: LARGE_LABEL } : {})]),
);

const faults: Readonly<Record<string, (response: ServerResponse, request: IncomingMessage) => void>> = {
  hang: () => undefined,
  reset: (_, request) => request.socket.destroy(),
  malformed: (response) => send(response, 200, '{"detail":'),
  slow: (response, request) => void setTimeout(() => answer(request, response), SLOW_MS),
};

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  request.resume();
  const fault = /[?&]fault=([a-z0-9]+)/.exec(request.url ?? '')?.[1];
  if (fault === undefined) answer(request, response);
  else if (Object.hasOwn(faults, fault)) faults[fault]?.(response, request);
  else send(response, Number(fault), `{"detail":"Told to.","code":"told_to"}`);
});

function answer({ url = '', method = '' }: IncomingMessage, response: ServerResponse): void {
  const [path = ''] = url.split('?', 1);
  const operation = matchPath(path)?.methods.get(method as Method);
  const body = operation && bodies.get(operation.id);
  if (body === '') response.writeHead(204).end();
  else if (body === undefined) send(response, 404, '{"detail":"Not found."}');
  else send(response, 200, body);
}

function send(response: ServerResponse, status: number, body: string): void {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(status, status === 429 ? { ...headers, 'Retry-After': '2' } : headers).end(body);
}

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
process.on('disconnect', () => process.exit(0));
