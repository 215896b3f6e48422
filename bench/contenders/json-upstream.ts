import { createServer } from 'node:http';
import { allOperations, type OperationId } from '../../test/support/account-api.ts';
import { exampleBody, exampleInput } from '../../test/support/examples.ts';
import { subscriptionFor } from './plain-answers.ts';

/** An upstream that answers whatever it knows after `DELAY_MS`, the subscription in the size that the credential asks for. */
const delayMs = Number(process.env['DELAY_MS'] ?? 0);
const nameOf = (method: string, path: string) => `${method} ${path}`;
const bodies = new Map(allOperations.map(({ id }) => [whereIs(id), Buffer.from(exampleBody(id))]));
const NOT_FOUND = Buffer.from('{"detail":"Not found."}');

function whereIs(id: OperationId): string {
  const { method, path } = exampleInput(id);
  return nameOf(method, path);
}

const SUBSCRIPTION = whereIs('getSubscription');

const server = createServer({ keepAliveTimeout: 60_000 }, ({ method = '', url = '', headers }, response) => {
  const [path = ''] = url.split('?', 1);
  const asked = nameOf(method, path);
  const known = asked === SUBSCRIPTION ? subscriptionFor(headers.authorization ?? '') : bodies.get(asked);
  const body = known ?? NOT_FOUND;
  const answer = () => {
    const length = ['Content-Length', String(body.length)];
    response.writeHead(known ? 200 : 404, ['Content-Type', 'application/json', ...length]);
    response.end(body);
  };
  if (delayMs > 0) setTimeout(answer, delayMs);
  else answer();
});

server.listen(Number(process.env['PORT']), '127.0.0.1');
