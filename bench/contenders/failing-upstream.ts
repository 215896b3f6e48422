import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { matchPath } from '../../src/upstream/match.ts';
import type { Method } from '../../src/upstream/operation.ts';
import { allOperations } from '../../src/upstream/operations/index.ts';
import { exampleBody } from '../../test/support/examples.ts';

/**
 * An upstream that fails when told to: all calls by a message, one call by a parameter `fault` in its query. Answers each
 * message with the number of calls it has received. Prints its URL.
 */
interface Told {
  readonly mode?: 'well' | 'refuse' | 'unavailable' | 'hang';
  /** Share of the calls that are answered with 503, at random. */
  readonly errorShare?: number;
}

const SLOW_MS = 200;
const LARGE_LABEL = 'k'.repeat(24_000);
const UNAVAILABLE = '{"detail":"Service unavailable."}';

const bodies = new Map<string, string>(
  allOperations.map(({ id }) => [id, exampleBody(id, id === 'createApiKey' ? { label: LARGE_LABEL } : {})]),
);

let mode: Told['mode'] = 'well';
let errorShare = 0;
let received = 0;

const faults: Readonly<Record<string, (response: ServerResponse, request: IncomingMessage) => void>> = {
  hang: () => undefined,
  reset: (_, request) => request.socket.destroy(),
  malformed: (response) => send(response, 200, '{"detail":'),
  slow: (response, request) => void setTimeout(() => answer(request, response), SLOW_MS),
};

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  received++;
  request.resume();
  const fault = /[?&]fault=([a-z0-9]+)/.exec(request.url ?? '')?.[1] ?? '';
  if (mode === 'hang') return;
  if (mode === 'unavailable' || Math.random() < errorShare) send(response, 503, UNAVAILABLE);
  else if (fault === '') answer(request, response);
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

let port = 0;
server.listen(0, '127.0.0.1', () => {
  ({ port } = server.address() as AddressInfo);
  console.log(`http://127.0.0.1:${port}`);
});

process.on('disconnect', () => process.exit(0));
process.on('message', (told: Told) => {
  errorShare = told.errorShare ?? errorShare;
  void become(told.mode ?? mode).then(() => process.send?.({ received }));
});

async function become(next: Told['mode']): Promise<void> {
  mode = next;
  if (next === 'refuse') {
    server.close();
    server.closeAllConnections();
  } else if (!server.listening) await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
}
