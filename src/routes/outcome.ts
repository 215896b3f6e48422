import * as z from 'zod/mini';
import type { Gateway } from '../gateway/gateway.ts';
import { jsonAnswer, reply } from '../middleware/reply.ts';
import { documented, integer, model, timestamp } from '../upstream/fields.ts';
import type { Description } from './openapi.ts';
import { KEY } from './passthrough.ts';
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

const done = model('WriteDone', {
  state: z.literal('done'),
  status: integer('of the answer that the key gets again', 201),
  at: z.optional(timestamp('when that was recorded; absent if an earlier release did it', '2026-11-22T18:09:43.000Z')),
});

const open = model('WriteOpen', {
  state: documented(z.enum(['under_way', 'unknown']), {
    description: '`unknown`: the write was sent, and may have happened',
    examples: ['unknown'],
  }),
});

const schema = documented(z.union([done, open]), { id: 'WriteOutcome' });

export const outcomeDescription: Description = {
  method: 'get',
  path: '/bff/v1/outcome',
  operationId: 'getOutcome',
  tags: ['Writes'],
  summary: 'What became of an idempotency key',
  details(doc) {
    const parameters = doc.parameters('header', KEY).map((key) => ({ ...key, required: true }));
    const description = 'What is known of the write. Nothing is sent to the upstream.';
    return {
      parameters,
      responses: {
        200: { description, headers: doc.unstored, content: doc.json(schema) },
        ...doc.unheard,
        ...doc.refused,
      },
    };
  },
};
