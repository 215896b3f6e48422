import type { Gateway } from '../gateway/gateway.ts';
import { checkIdempotencyKey } from '../http/body.ts';
import { jsonAnswer } from '../http/reply.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';

export const outcomeRoute = (gateway: Gateway): Route =>
  routeOf(outcomeDescription, {
    async handle(request) {
      const key = request.header('idempotency-key') ?? '';
      try {
        checkIdempotencyKey(key);
      } catch (error) {
        await gateway.admit(request); // what is refused counts too
        throw error;
      }
      return jsonAnswer(await gateway.writes.outcomeOf(request, key));
    },
  });

export const outcomeDescription: Description = {
  method: 'get',
  path: '/bff/v1/outcome',
  operationId: 'getOutcome',
  tags: ['Writes'],
  summary: 'What became of an idempotency key',
  details: (doc) => doc.outcome(),
};
