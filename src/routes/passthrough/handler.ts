import type { Gateway } from '../../gateway/gateway.ts';
import type { Written } from '../../gateway/idempotency.ts';
import { type Answer, NO_STORE } from '../../http/answer.ts';
import { jsonTextOf, unreadTextOf } from '../../http/body.ts';
import type { Context } from '../../http/context.ts';
import type { Route } from '../../http/lifecycle.ts';
import { readAnswer } from '../../http/read-answer.ts';
import { ID_FORMS, type Operation } from '../../upstream/operation.ts';
import { allOperations } from '../../upstream/operations/index.ts';
import type { OperationInput } from '../../upstream/call.ts';

/** The upstream's endpoints, each at its own path (`contract.md` section 2). */
export function passthroughRoutes(gateway: Gateway): Route[] {
  return allOperations.map((operation) => ({
    method: operation.method,
    path: patternOf(operation),
    name: operation.path,
    operation: operation.id,
    takes: headersTakenBy(operation),
    handle: operation.method === 'GET' ? reading(operation, gateway) : writing(operation, gateway),
  }));
}

/** As Hono's pattern, without the trailing slash, which the app ignores. */
function patternOf({ path, idForm = 'digits' }: Operation): string {
  return path.replace('{id}', `:id{${ID_FORMS[idForm]}}`).replace(/\/$/, '');
}

/** An idempotency key is read on a POST only. */
function headersTakenBy({ method, credential, body }: Operation): string[] {
  return [
    ...(credential === 'none' ? [] : ['Authorization']),
    ...(method === 'GET' ? ['Cache-Control', 'If-None-Match'] : []),
    ...(body ? ['Content-Type'] : []),
    ...(method === 'POST' ? ['Idempotency-Key'] : []),
  ];
}

const inputOf = ({ param, inbound }: Context): OperationInput => ({ id: param, query: inbound.query });

function reading(operation: Operation, gateway: Gateway): Route['handle'] {
  return async (context) => {
    const read = { operation, input: inputOf(context) };
    const reader = await gateway.reader(context, () => [read]);
    return readAnswer(context, reader.fresh(read) ?? (await gateway.read(read, reader)));
  };
}

function writing(operation: Operation, gateway: Gateway): Route['handle'] {
  return async (context) => {
    context.cache = 'method';
    const input = async () => {
      context.checkIdempotencyKey();
      const sent = operation.body ? { body: await jsonTextOf(context) } : { unsent: await unreadTextOf(context) };
      return { ...inputOf(context), ...sent };
    };
    return writtenAnswer(await gateway.write(operation, input, context));
  };
}

function writtenAnswer({ status, text, replayed }: Written): Answer {
  const outcome = replayed ? { 'Idempotency-Replayed': 'true' } : { 'Cache-Status': 'portico; fwd=method' };
  const headers = { ...NO_STORE, ...outcome };
  if (text === null) return { status, headers, body: null };
  return { status, headers: { ...headers, 'Content-Type': 'application/json' }, body: text };
}
