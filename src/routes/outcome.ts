import type { Gateway } from '../gateway/gateway.ts';
import { jsonAnswer, reply } from '../http/reply.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';

export const outcomeRoute = (gateway: Gateway): Route =>
  routeOf(outcomeDescription, {
    async handle(c) {
      const request = c.get('porticoRequest');
      const key = request.header('idempotency-key') ?? '';
      try {
        request.checkIdempotencyKey(key);
      } catch (error) {
        await gateway.reader(request); // what is refused counts too
        throw error;
      }
      return reply(c, jsonAnswer(await gateway.outcome(request, key)));
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
