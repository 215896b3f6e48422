import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { exampleOf } from '../../upstream/example.ts';
import { documented, integer, text } from '../../upstream/fields.ts';
import { operations } from '../../upstream/operations/index.ts';
import { batchBody } from './handler.ts';
import { UNSTORED } from '../openapi/headers.ts';
import { problemAnswers, refusedAnswer } from '../openapi/problem.ts';
import { jsonContent } from '../openapi/schemas.ts';

const batchRequest = documented(batchBody, { id: 'BatchRequest' });

const batchAnswer = z
  .object({
    responses: z.array(
      z.object({
        id: text('as in the request', 'a'),
        status: integer('what the call by itself would have', 200),
        body: z.unknown().meta({ description: 'what the call by itself would answer' }),
      }),
    ),
  })
  .meta({ id: 'BatchAnswer' });

export function batchPath(tag: string): RouteConfig {
  const body = exampleOf(operations.getSubscription.answer);
  const content = jsonContent(batchAnswer, { responses: [{ id: 'a', status: 200, body }] });
  return {
    method: 'post',
    path: '/bff/v1/batch',
    operationId: 'batch',
    tags: [tag],
    summary: 'Several reads in one request',
    description:
      '1 to 20 pass-through GETs with distinct ids, answered in order. Equal ones share a call. Sent one by one until ' +
      'the upstream has accepted the credential; after a 401 or 403 the others get that problem, unsent.',
    request: { body: { required: true, content: jsonContent(batchRequest) } },
    responses: {
      200: { description: 'One answer for each; problems stand as they are.', headers: UNSTORED, content },
      ...refusedAnswer,
      ...problemAnswers,
    },
  };
}
