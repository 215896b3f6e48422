import * as z from 'zod/mini';
import type { GatewayError } from '../core/errors.ts';
import { answerBatch, type BatchItem, itemsOf, readsIn } from '../gateway/batch.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { jsonTextOf } from '../http/body.ts';
import { problemFor } from '../http/problem.ts';
import { NO_STORE } from '../http/reply.ts';
import type { HonoRequest } from '../http/request.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { documented } from '../upstream/fields.ts';
import { checkBody, invalid } from '../upstream/input.ts';
import type { Table } from '../upstream/table.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';

/** Visible ASCII, as in an encoded URL, without a fragment. */
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/;

const idOfItem = z.string().check(z.minLength(1), z.maxLength(64));
const pathOfItem = z.string().check(z.maxLength(4096), z.regex(TARGET, 'expected a path that starts with /'));

const batchItem = z.strictObject({
  id: documented(idOfItem, { description: 'yours to choose, distinct in a batch', examples: ['a'] }),
  path: documented(pathOfItem, {
    description: 'a pass-through GET, with its query',
    examples: ['/path/'],
  }),
});

const batchBody = z.strictObject({
  requests: z.array(batchItem).check(
    z.minLength(1),
    z.maxLength(20),
    z.refine((items) => new Set(items.map(({ id }) => id)).size === items.length, 'ids have to be distinct'),
  ),
});

/** A batch only reads, so it may be repeated without a key. */
const KEYED = { code: 'not_allowed', message: 'a batch takes no idempotency key', field: 'Idempotency-Key' };

export const batchRoute = (gateway: Gateway): Route =>
  routeOf(batchDescription(gateway.deps.table), {
    async handle(request) {
      let items: readonly BatchItem[] = [];
      let snapshot: Snapshot;
      try {
        items = await itemsIn(request, gateway);
      } finally {
        snapshot = await gateway.admit(request, readsIn(items)); // what is refused for its body counts too
      }
      const tell = (error: GatewayError, instance: string) => problemFor(request, error, instance);
      const body = await answerBatch(gateway, items, { request, snapshot, problemFor: tell });
      const isSecret = readsIn(items).some(({ operation }) => operation.secrets);
      return { status: 200, headers: { ...NO_STORE, 'Content-Type': 'application/json' }, body, isSecret };
    },
  });

/** @throws GatewayError `unauthenticated`, `validation_failed`, and what `jsonTextOf` and `checkBody` throw */
async function itemsIn(request: HonoRequest, gateway: Gateway): Promise<BatchItem[]> {
  void request.credential; // without one the body is not read
  if (request.idempotencyKey !== undefined) throw invalid([KEYED]);
  return itemsOf(checkBody(batchBody, (await jsonTextOf(request)) ?? '').requests, gateway);
}

export const batchDescription = (table: Table): Description => ({
  method: 'post',
  path: '/bff/v1/batch',
  operationId: 'batch',
  tags: ['Composed'],
  summary: 'Several reads in one request',
  details: (doc) => doc.batch(table, batchBody),
});
