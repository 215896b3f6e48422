import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { exampleOf } from '../../upstream/example.ts';
import { type CachePolicy, ID_FORMS, type Operation } from '../../upstream/operation.ts';
import { allOperations } from '../../upstream/operations/index.ts';
import { cachedAnswers, conditionalHeaders, REPLAYED, UNSTORED } from '../openapi/headers.ts';
import { idempotencyAnswers, limitedAnswer, problemAnswers, refusedAnswer } from '../openapi/problem.ts';
import { jsonContent, jsonSchemaOf } from '../openapi/schemas.ts';

/** The upstream's endpoints, row by row. */
export function passthroughPaths(): RouteConfig[] {
  return allOperations.map(pathOf);
}

function pathOf(operation: Operation): RouteConfig {
  const { id, method, path, tag, summary, query, body } = operation;
  return {
    method: METHODS[method],
    path,
    operationId: id,
    tags: [tag],
    summary,
    description: descriptionOf(operation),
    ...(operation.credential === 'none' && { security: [] }),
    ...(query && { parameters: queryParametersOf(query) }),
    request: {
      ...parametersOf(operation),
      ...(body && { body: { required: !body.optional, content: jsonContent(body.schema) } }),
    },
    responses: {
      ...goodAnswers(operation),
      ...(operation.credential === 'none' ? limitedAnswer : refusedAnswer),
      ...(method === 'POST' && idempotencyAnswers),
      ...problemAnswers,
    },
  };
}

const METHODS = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const;

function descriptionOf({ method, description, cache, exclusive }: Operation): string {
  const held = cache ? cacheWords(cache) : method === 'GET' && 'Never held in the cache.';
  const once = exclusive && 'Without a key, the second of two equal ones at the same moment is refused with 409.';
  return [description, held, once].filter(Boolean).join(' ');
}

const cacheWords = ({ fresh, stale, onError }: CachePolicy) =>
  `Held for the account: fresh for ${fresh} s, then up to ${stale} s while it is refreshed and up to ${onError} s ` +
  'while the upstream fails, unless the operator has set other times.';

function parametersOf(operation: Operation): RouteConfig['request'] {
  const { method, cache } = operation;
  return {
    ...(operation.idForm && { params: z.object({ id: idSchema(operation) }) }),
    ...(cache && { headers: conditionalHeaders }),
    ...(method === 'POST' && { headers: writeHeaders }),
  };
}

function idSchema({ idForm = 'digits', answer }: Operation) {
  const { id = 1091 } = answer instanceof z.core.$ZodObject ? (exampleOf(answer) as { id?: number }) : {};
  return z
    .string()
    .regex(new RegExp(`^${ID_FORMS[idForm]}$`))
    .meta({ description: 'identifier, digit for digit as it came', examples: [String(id)] });
}

function queryParametersOf(query: NonNullable<Operation['query']>): NonNullable<RouteConfig['parameters']> {
  return Object.entries(query).map(([name, schema]) => {
    const description = z.globalRegistry.get(schema)?.description ?? 'goes to the upstream as it is';
    return { name, in: 'query', required: false, description, schema: jsonSchemaOf(schema) };
  });
}

const writeHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/)
    .optional()
    .meta({
      description: 'new for each thing that the user does; sent again within 24 hours, it gets the first answer again',
    }),
});

function goodAnswers({ method, answer, cache }: Operation): RouteConfig['responses'] {
  const headers = method === 'POST' ? { ...UNSTORED, ...REPLAYED } : UNSTORED;
  if (answer === null) return { 204: { description: 'Done. No body.', headers } };
  const content = jsonContent(answer);
  if (cache) return cachedAnswers(content);
  // Which 2xx status a write has is the upstream's to say; its documentation does not.
  const status = method === 'GET' ? '200' : '2XX';
  return { [status]: { description: 'As the upstream sent it.', headers, content } };
}
