import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { ERRORS } from '../../core/errors.ts';
import { exampleOf } from '../../upstream/example.ts';
import { documented, text } from '../../upstream/fields.ts';
import { allOperations, operations } from '../../upstream/operations/index.ts';
import { batchBody } from './handler.ts';
import { UNSTORED } from '../openapi/headers.ts';
import { problemAnswers, problemExample, problemSchema, refusedAnswer } from '../openapi/problem.ts';
import { jsonContent } from '../openapi/schemas.ts';

const batchRequest = documented(batchBody, { id: 'BatchRequest' });

const reads = new Set(allOperations.flatMap(({ method, answer }) => (method === 'GET' && answer ? [answer] : [])));

/** Every status that a problem may have. One by one, so that in generated types `status` tells the two answers apart. */
const failures = new Set([
  ...Array.from({ length: 100 }, (_, index) => 400 + index),
  ...Object.values(ERRORS).map(({ status }) => status),
]);

const id = text('as in the request', 'a');

const batchRead = z
  .object({
    id,
    status: z.literal(200).meta({ type: 'integer' }),
    body: z.union([...reads]).meta({ description: 'that of the path' }),
  })
  .meta({ id: 'BatchRead', description: 'What the call by itself would answer.' });

const batchProblem = z
  .object({
    id,
    status: z.literal([...failures]).meta({ type: 'integer', description: 'that of the problem' }),
    body: problemSchema,
  })
  .meta({
    id: 'BatchProblem',
    description: 'The problem that the call by itself would get, or that its answer is too large here.',
  });

const batchAnswer = z
  .object({
    responses: z.array(z.union([batchRead, batchProblem])).meta({ description: 'in the order of the request' }),
  })
  .meta({ id: 'BatchAnswer' });

export function batchPath(tag: string): RouteConfig {
  const body = exampleOf(operations.getSubscription.answer);
  const problem = problemExample('not_found', '/api/v2/payment/transaction/31/');
  const responses = [
    { id: 'a', status: 200, body },
    { id: 'b', status: problem.status, body: problem },
  ];
  const content = jsonContent(batchAnswer, { responses });
  return {
    method: 'post',
    path: '/bff/v1/batch',
    operationId: 'batch',
    tags: [tag],
    summary: 'Several reads in one request',
    description:
      '1 to 20 pass-through GETs with distinct ids, answered in order. Equal ones share a call. A body beyond what all may ' +
      'have together is a problem, `payload_too_large`: ask for it alone. Sent one by one until the upstream has accepted the credential; after a 401 or 403 the others get that problem, unsent.',
    request: { body: { required: true, content: jsonContent(batchRequest) } },
    responses: {
      200: { description: 'One answer for each; problems stand as they are.', headers: UNSTORED, content },
      ...refusedAnswer,
      ...problemAnswers,
    },
  };
}
