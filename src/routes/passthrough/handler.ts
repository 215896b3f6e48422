import type { Gateway } from '../../gateway/gateway.ts';
import type { Written } from '../../gateway/idempotency.ts';
import { jsonTextOf, unreadTextOf } from '../../middleware/body.ts';
import { readAnswer } from '../../middleware/read-answer.ts';
import { type Answer, NO_STORE, reply } from '../../middleware/reply.ts';
import type { ClientRequest } from '../../middleware/request.ts';
import { ID_FORMS, type Operation } from '../../upstream/operation.ts';
import { allOperations } from '../../upstream/operations/index.ts';
import type { OperationInput } from '../../upstream/call.ts';
import type { Route } from '../route.ts';

/** The upstream's endpoints, each at its own path (`contract.md` section 2). */
export function passthroughRoutes(gateway: Gateway): Route[] {
  return allOperations.map((operation: Operation) => ({
    method: operation.method,
    path: patternOf(operation),
    name: operation.path,
    operation: operation.id,
    ...(operation.credential !== 'none' && { takesCredential: true }),
    ...(operation.method === 'GET' ? reading(operation, gateway) : writing(operation, gateway)),
  }));
}

/** As Hono's pattern, without the trailing slash. */
function patternOf({ path, idForm = 'digits' }: Operation): string {
  return path.replace('{id}', `:id{${ID_FORMS[idForm]}}`).replace(/\/$/, '');
}

const inputOf = ({ id, query }: ClientRequest): OperationInput => ({ id, query });

const reading = (operation: Operation, gateway: Gateway): Pick<Route, 'isRead' | 'handle'> => ({
  isRead: true,
  async handle(c) {
    const request = c.get('request');
    const read = { operation, input: inputOf(request) };
    const reader = await gateway.reader(request, () => [read]);
    return reply(c, readAnswer(request, reader.fresh(read) ?? (await gateway.read(read, reader))));
  },
});

const writing = (operation: Operation, gateway: Gateway): Pick<Route, 'handle'> => ({
  async handle(c) {
    const request = c.get('request');
    request.cache = 'method';
    const input = async () => {
      request.checkIdempotencyKey();
      const sent = operation.body ? { body: await jsonTextOf(request) } : { unsent: await unreadTextOf(request) };
      return { ...inputOf(request), ...sent };
    };
    return reply(c, writtenAnswer(await gateway.write(operation, input, request)));
  },
});

function writtenAnswer({ status, text, replayed }: Written): Answer {
  const outcome = replayed ? { 'Idempotency-Replayed': 'true' } : { 'Cache-Status': 'portico; fwd=method' };
  const headers = { ...NO_STORE, ...outcome };
  if (text === null) return { status, headers, body: null };
  return { status, headers: { ...headers, 'Content-Type': 'application/json' }, body: text };
}
