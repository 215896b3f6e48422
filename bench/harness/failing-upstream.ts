import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allOperations, matchPath } from '../../test/support/account-api.ts';
import type { Method } from '../../src/upstream/operation.ts';
import { exampleBody } from '../../test/support/examples.ts';

/**
 * An upstream that fails when told to: all calls by a message, one call by parameters in its query: `fault`, `delay` in
 * milliseconds, `size` of a good answer in bytes, `retry` as the seconds of a 429. Answers each message with the number of
 * calls it has received, also by the `User-Agent` that sent them, and how often each key was charged for. Prints its URL.
 */
interface Told {
  readonly mode?: 'well' | 'refuse' | 'unavailable' | 'hang';
  /** Share of the calls that are answered with 503, at random. */
  readonly errorShare?: number;
  /** What a call takes at least. */
  readonly ms?: number;
}

const SLOW_MS = 200;
const LARGEST = 'k'.repeat(4_000_000);
const LARGE_LABEL = 'k'.repeat(24_000);
const UNAVAILABLE = '{"detail":"Service unavailable."}';

const bodies = new Map<string, string>(
  allOperations.map(({ id }) => [id, exampleBody(id, id === 'createApiKey' ? { label: LARGE_LABEL } : {})]),
);

let mode: Told['mode'] = 'well';
let errorShare = 0;
let ms = 0;
let received = 0;
const receivedFrom: Record<string, number> = {};
const charges: Record<string, number> = {};

const faults: Readonly<Record<string, (response: ServerResponse, request: IncomingMessage) => void>> = {
  hang: () => undefined,
  reset: (_, request) => request.socket.destroy(),
  malformed: (response) => send(response, 200, '{"detail":'),
  slow: (response, request) => void setTimeout(() => answer(request, response), SLOW_MS),
};

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  received++;
  const agent = request.headers['user-agent'] ?? '';
  receivedFrom[agent] = (receivedFrom[agent] ?? 0) + 1;
  request.resume();
  const delay = Number(told(request, 'delay') || ms);
  if (delay > 0) setTimeout(() => meet(request, response), delay);
  else meet(request, response);
});

const told = ({ url = '' }: IncomingMessage, name: string) =>
  new RegExp(`[?&]${name}=([a-z0-9]+)`).exec(url)?.[1] ?? '';

function meet(request: IncomingMessage, response: ServerResponse): void {
  const fault = told(request, 'fault');
  if (mode === 'hang') return;
  if (mode === 'unavailable' || Math.random() < errorShare) send(response, 503, UNAVAILABLE);
  else if (fault === '') answer(request, response);
  else if (Object.hasOwn(faults, fault)) faults[fault]?.(response, request);
  else send(response, Number(fault), `{"detail":"Told to.","code":"told_to"}`, told(request, 'retry'));
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { url = '', method = '' } = request;
  const [path = ''] = url.split('?', 1);
  const operation = matchPath(path)?.methods.get(method as Method);
  const body = operation && bodies.get(operation.id);
  if (operation?.id === 'purchasePlan') charge(String(request.headers['idempotency-key']));
  if (body === '') response.writeHead(204).end();
  else if (body === undefined) send(response, 404, '{"detail":"Not found."}');
  else send(response, 200, padded(body, Number(told(request, 'size'))));
}

const charge = (key: string) => void (charges[key] = (charges[key] ?? 0) + 1);

const padded = (body: string, size: number) =>
  size > body.length ? `{"x_pad":"${LARGEST.slice(0, size - body.length)}",${body.slice(1)}` : body;

function send(response: ServerResponse, status: number, body: string, retry = ''): void {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(status, status === 429 ? { ...headers, 'Retry-After': retry || '2' } : headers).end(body);
}

let port = 0;
server.listen(0, '127.0.0.1', () => {
  ({ port } = server.address() as AddressInfo);
  console.log(`http://127.0.0.1:${port}`);
});

process.on('disconnect', () => process.exit(0));
process.on('message', (message: Told) => {
  errorShare = message.errorShare ?? errorShare;
  ms = message.ms ?? ms;
  void become(message.mode ?? mode).then(() => process.send?.({ received, receivedFrom, charges }));
});

async function become(next: Told['mode']): Promise<void> {
  mode = next;
  if (next === 'refuse') {
    server.close();
    server.closeAllConnections();
  } else if (!server.listening) await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
}
