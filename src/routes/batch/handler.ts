import * as z from 'zod/mini';
import { GatewayError } from '../../core/errors.ts';
import { answerBatch } from '../../gateway/batch.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { jsonTextOf } from '../../middleware/body.ts';
import { NO_STORE, reply } from '../../middleware/reply.ts';
import { documented } from '../../upstream/fields.ts';
import { checkBody } from '../../upstream/input.ts';
import type { Route } from '../route.ts';

/** Visible ASCII, as in an encoded URL, without a fragment. */
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/;

const idOfItem = z.string().check(z.minLength(1), z.maxLength(64));
const pathOfItem = z.string().check(z.maxLength(4096), z.regex(TARGET, 'expected a path that starts with /'));

const batchItem = z.strictObject({
  id: documented(idOfItem, { description: 'yours to choose, distinct in a batch', examples: ['a'] }),
  path: documented(pathOfItem, {
    description: 'a pass-through GET, with its query',
    examples: ['/api/v2/subscription/'],
  }),
});

export const batchBody = z.strictObject({
  requests: z.array(batchItem).check(
    z.minLength(1),
    z.maxLength(20),
    z.refine((items) => new Set(items.map(({ id }) => id)).size === items.length, 'ids have to be distinct'),
  ),
});

/** `maxBytes`: of all bodies of a batch together. */
export function batchRoute(gateway: Gateway, maxBytes: number): Route {
  return {
    method: 'POST',
    path: '/bff/v1/batch',
    name: '/bff/v1/batch',
    operation: 'batch',
    isRead: true,
    takesCredential: true,
    async handle(c) {
      const request = c.get('request');
      const reader = await gateway.reader(request);
      if (request.idempotencyKey !== undefined) throw keyRefused();
      const text = await jsonTextOf(request);
      const { requests } = checkBody(batchBody, text ?? '');
      const body = await answerBatch(gateway, reader, requests, maxBytes);
      return reply(c, { status: 200, headers: { ...NO_STORE, 'Content-Type': 'application/json' }, body });
    },
  };
}

/** A batch only reads, so it may be repeated without a key. */
function keyRefused(): GatewayError {
  const message = 'a batch takes no idempotency key';
  return GatewayError.of('validation_failed', {
    errors: [{ code: 'not_allowed', message, field: 'Idempotency-Key' }],
  });
}
