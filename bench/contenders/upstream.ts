import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allOperations } from '../../src/upstream/operations/index.ts';
import { exampleBody } from '../../test/support/examples.ts';

/** An upstream that answers every parameterless GET after `delayMs`, and prints its URL. */
const delayMs = Number(process.argv[2] ?? 0);
const bodies = new Map<string, string>(
  allOperations.filter(({ method }) => method === 'GET').map(({ id, path }) => [path, exampleBody(id)]),
);

const server = createServer((request, response) => {
  const [path = ''] = (request.url ?? '').split('?', 1);
  const body = bodies.get(path);
  const answer = () => {
    response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    response.end(body ?? '{"detail":"Not found."}');
  };
  if (delayMs > 0) setTimeout(answer, delayMs);
  else answer();
});

server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
