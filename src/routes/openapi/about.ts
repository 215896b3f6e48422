import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { text } from '../../upstream/fields.ts';
import { descriptionOf, ownProblems } from '../problems.ts';
import { UNSTORED } from './headers.ts';
import { problemAnswers, problemSchema } from './problem.ts';
import { jsonContent } from './schemas.ts';

/** What tells of the gateway itself. Takes no credential. */
export function aboutPaths(tag: string): RouteConfig[] {
  return [problemsPath, problemPath, documentPath, pagePath, livePath, readyPath].map((path) => ({
    ...path,
    tags: [tag],
  }));
}

const common: Pick<RouteConfig, 'method' | 'security'> = { method: 'get', security: [] };

const EXAMPLE = 'paid_plan_active';

const descriptionSchema = problemSchema
  .pick({ type: true, title: true, status: true, code: true, detail: true, retryable: true })
  .partial({ status: true })
  .meta({ id: 'ProblemDescription', description: 'Without a status where the code is the upstream’s own.' });

const listSchema = z.object({ problems: z.array(descriptionSchema) }).meta({ id: 'ProblemList' });

const documentSchema = z.looseObject({ openapi: text('version', '3.1.0') }).meta({ id: 'OpenApiDocument' });

const healthSchema = z.object({ status: z.enum(['live', 'ready']) }).meta({ id: 'Health' });

const problemsPath: RouteConfig = {
  ...common,
  path: '/problems',
  operationId: 'listProblems',
  summary: 'All problem codes of the gateway',
  responses: {
    200: {
      description: 'Each code, as in every problem that has it.',
      content: jsonContent(listSchema, { problems: ownProblems() }),
    },
    ...problemAnswers,
  },
};

const problemPath: RouteConfig = {
  ...common,
  path: '/problems/{code}',
  operationId: 'getProblem',
  summary: 'What a problem code means',
  description: "A code of the upstream's own is described once this instance has sent it, and is a 404 before.",
  request: {
    params: z.object({ code: z.string().meta({ description: '`code` of a problem', examples: [EXAMPLE] }) }),
  },
  responses: {
    200: {
      description: 'The code, as in every problem that has it.',
      content: jsonContent(descriptionSchema, descriptionOf(EXAMPLE)),
    },
    ...problemAnswers,
  },
};

const documentPath: RouteConfig = {
  ...common,
  path: '/openapi.json',
  operationId: 'getOpenApiDocument',
  summary: 'This document',
  responses: {
    200: {
      description: 'OpenAPI 3.1.',
      content: jsonContent(documentSchema),
    },
    ...problemAnswers,
  },
};

const pagePath: RouteConfig = {
  ...common,
  path: '/docs',
  operationId: 'getDocsPage',
  summary: 'This document as a page',
  responses: {
    200: { description: 'A page that needs nothing from any other host.', content: { 'text/html': {} } },
    ...problemAnswers,
  },
};

const healthAnswer = (status: 'live' | 'ready') => ({
  200: {
    description: 'Yes.',
    headers: UNSTORED,
    content: jsonContent(healthSchema, { status }),
  },
  ...problemAnswers,
});

const livePath: RouteConfig = {
  ...common,
  path: '/livez',
  operationId: 'getLiveness',
  summary: 'Whether this instance runs',
  responses: healthAnswer('live'),
};

const readyPath: RouteConfig = {
  ...common,
  path: '/readyz',
  operationId: 'getReadiness',
  summary: 'Whether this instance takes requests',
  description: '503 `not_ready` while it shuts down. Says nothing of the upstream.',
  responses: healthAnswer('ready'),
};
