import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { type ErrorCode, ERRORS } from '../../core/errors.ts';
import { text } from '../../upstream/fields.ts';
import { UNSTORED } from './headers.ts';
import { problemAnswers, problemSchema } from './problem.ts';
import { jsonContent } from './schemas.ts';

/** What tells of the gateway itself. Takes no credential. */
export function aboutPaths(tag: string): RouteConfig[] {
  return [problemPath, documentPath, pagePath, livePath, readyPath].map((path) => ({ ...path, tags: [tag] }));
}

const common: Pick<RouteConfig, 'method' | 'security'> = { method: 'get', security: [] };

const codes = Object.keys(ERRORS) as ErrorCode[];
const EXAMPLE: ErrorCode = 'paid_plan_active';

const descriptionSchema = problemSchema
  .pick({ type: true, title: true, status: true, code: true, detail: true, retryable: true })
  .meta({ id: 'ProblemDescription' });

const documentSchema = z.looseObject({ openapi: text('version', '3.1.0') }).meta({ id: 'OpenApiDocument' });

const healthSchema = z.object({ status: z.enum(['live', 'ready']) }).meta({ id: 'Health' });

const problemPath: RouteConfig = {
  ...common,
  path: '/problems/{code}',
  operationId: 'getProblem',
  summary: 'What a problem code means',
  description: "The gateway's own codes; those of the upstream are described only where it documents them.",
  request: {
    params: z.object({ code: z.enum(codes).meta({ description: '`code` of a problem', examples: [EXAMPLE] }) }),
  },
  responses: {
    200: {
      description: 'The code, as in every problem that has it.',
      content: jsonContent(descriptionSchema, describe(EXAMPLE)),
    },
    ...problemAnswers,
  },
};

function describe(code: ErrorCode) {
  const { title, status, retryable, description } = ERRORS[code];
  return { type: `/problems/${code}`, title, status, code, detail: description, retryable };
}

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
