import { createServer } from 'node:http';
import { allOperations, type OperationId } from '../../test/support/account-api.ts';
import { exampleBody, exampleInput } from '../../test/support/examples.ts';
import { subscription } from './plain-answers.ts';

/** An upstream that answers whatever it knows at once. */
const bodies = new Map<string, Buffer>(allOperations.map(({ id }) => [whereIs(id), Buffer.from(exampleBody(id))]));
bodies.set(whereIs('getSubscription'), subscription);
const NOT_FOUND = Buffer.from('{"detail":"Not found."}');

function whereIs(id: OperationId): string {
  const { method, path } = exampleInput(id);
  return `${method} ${path}`;
}

const server = createServer({ keepAliveTimeout: 60_000 }, ({ method, url = '' }, response) => {
  const known = bodies.get(`${method} ${url.split('?', 1)[0]}`);
  const body = known ?? NOT_FOUND;
  const length = ['Content-Length', String(body.length)];
  response.writeHead(known ? 200 : 404, ['Content-Type', 'application/json', ...length]);
  response.end(body);
});

server.listen(Number(process.env['PORT']), '127.0.0.1');
