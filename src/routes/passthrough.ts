import { andThen } from '../core/runtime.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Written } from '../gateway/idempotency.ts';
import { type Answer, NO_STORE } from '../http/answer.ts';
import { jsonTextOf, unreadTextOf } from '../http/body.ts';
import type { Handler } from '../http/conduct.ts';
import type { Exchange } from '../http/exchange.ts';
import { readingAnswer } from '../http/reading-answer.ts';
import { ID_FORMS, type Operation } from '../upstream/operation.ts';
import { allOperations } from '../upstream/operations/index.ts';
import type { OperationInput } from '../upstream/request.ts';
import type { Route } from './route.ts';

/** The upstream's endpoints, each at its own path (`contract.md` section 2). */
export function passthroughRoutes(gateway: Gateway): Route[] {
  return allOperations.map((operation) => ({
    method: operation.method,
    path: patternOf(operation),
    name: operation.path,
    takes: headersTakenBy(operation),
    handler: operation.method === 'GET' ? readHandler(operation, gateway) : writeHandler(operation, gateway),
  }));
}

/** Hono's pattern. The app ignores a trailing slash. */
function patternOf({ path, idForm = 'digits' }: Operation): string {
  return path.replace('{id}', `:id{${ID_FORMS[idForm]}}`).replace(/\/$/, '');
}

/** A key counts on a POST only. */
function headersTakenBy({ method, credential, body }: Operation): string[] {
  return [
    ...(credential === 'none' ? [] : ['Authorization']),
    ...(method === 'GET' ? ['Cache-Control', 'If-None-Match'] : []),
    ...(body ? ['Content-Type'] : []),
    ...(method === 'POST' ? ['Idempotency-Key'] : []),
  ];
}

function inputOf({ context, query }: Exchange): OperationInput {
  return { id: context.req.param('id'), query };
}

function readHandler(operation: Operation, gateway: Gateway): Handler {
  return (exchange) => {
    exchange.notes = { operation: operation.id };
    const input = inputOf(exchange);
    return andThen(
      exchange.reader(() => [{ operation, input }]),
      (caller) => andThen(gateway.read(operation, input, caller), (reading) => readingAnswer(exchange, reading)),
    );
  };
}

function writeHandler(operation: Operation, gateway: Gateway): Handler {
  return async (exchange) => {
    exchange.notes = { operation: operation.id, cache: 'method' };
    const caller = await exchange.writer(operation);
    const input = async () => {
      exchange.checkIdempotencyKey();
      const sent = operation.body ? { body: await jsonTextOf(exchange) } : { unsent: await unreadTextOf(exchange) };
      return { ...inputOf(exchange), ...sent };
    };
    return writtenAnswer(await gateway.write(operation, input, caller));
  };
}

function writtenAnswer({ status, text, replayed }: Written): Answer {
  const outcome = replayed ? { 'Idempotency-Replayed': 'true' } : { 'Cache-Status': 'portico; fwd=method' };
  const headers = { ...NO_STORE, ...outcome };
  if (text === null) return { status, headers, body: null };
  return { status, headers: { ...headers, 'Content-Type': 'application/json' }, body: text };
}
