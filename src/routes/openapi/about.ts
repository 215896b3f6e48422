import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { text } from '../../upstream/fields.ts';
import { descriptionOf, ownProblems } from '../problems.ts';
import { UNSTORED } from './headers.ts';
import { problemAnswers, problemSchema } from './problem.ts';
import { jsonContent } from './schemas.ts';

/** What tells of the gateway itself. Takes no credential. */
export function aboutPaths(tag: string): RouteConfig[] {
  return pages.map(({ good, ...page }) => {
    return { method: 'get', security: [], ...page, responses: { 200: good, ...problemAnswers }, tags: [tag] };
  });
}

interface Page extends Omit<RouteConfig, 'method' | 'responses'> {
  readonly good: RouteConfig['responses'][string];
}

const EXAMPLE = 'paid_plan_active';

const descriptionSchema = problemSchema
  .pick({ type: true, title: true, status: true, code: true, detail: true, retryable: true })
  .partial({ status: true })
  .meta({ id: 'ProblemDescription', description: 'A code of the upstream’s own has no status here.' });

const listSchema = z.object({ problems: z.array(descriptionSchema) }).meta({ id: 'ProblemList' });

const documentSchema = z.looseObject({ openapi: text('version', '3.1.0') }).meta({ id: 'OpenApiDocument' });

const healthSchema = z.object({ status: z.enum(['live', 'ready']) }).meta({ id: 'Health' });

const healthy = (status: 'live' | 'ready') => {
  return { description: 'It is.', headers: UNSTORED, content: jsonContent(healthSchema, { status }) };
};

const links = { name: 'Portico', docs: '/docs', openapi: '/openapi.json', problems: '/problems' } as const;

const linksSchema = z
  .object({
    name: z.literal(links.name),
    docs: text('path', links.docs),
    openapi: text('path', links.openapi),
    problems: text('path', links.problems),
  })
  .meta({ id: 'Links' });

const pages: readonly Page[] = [
  {
    path: '/',
    operationId: 'getHome',
    summary: 'Start page',
    good: {
      description: 'A page; as JSON if `Accept` asks for JSON and not for HTML.',
      content: { 'text/html': {}, ...jsonContent(linksSchema, links) },
    },
  },
  {
    path: '/problems',
    operationId: 'listProblems',
    summary: 'All problem codes of the gateway',
    good: {
      description: 'All codes, each with its title, status and description.',
      content: jsonContent(listSchema, { problems: ownProblems() }),
    },
  },
  {
    path: '/problems/{code}',
    operationId: 'getProblem',
    summary: 'What a problem code means',
    description: "A code of the upstream's own is described once this instance has sent it, and is a 404 before.",
    request: {
      params: z.object({ code: z.string().meta({ description: '`code` of a problem', examples: [EXAMPLE] }) }),
    },
    good: {
      description: 'Its title, status and description.',
      content: jsonContent(descriptionSchema, descriptionOf(EXAMPLE)),
    },
  },
  {
    path: '/openapi.json',
    operationId: 'getOpenApiDocument',
    summary: 'This document',
    good: { description: 'OpenAPI 3.1.', content: jsonContent(documentSchema) },
  },
  {
    path: '/docs',
    operationId: 'getDocsPage',
    summary: 'This document as a page',
    good: { description: 'A page that needs nothing from any other host.', content: { 'text/html': {} } },
  },
  {
    path: '/livez',
    operationId: 'getLiveness',
    summary: 'Whether this instance runs',
    good: healthy('live'),
  },
  {
    path: '/readyz',
    operationId: 'getReadiness',
    summary: 'Whether this instance takes requests',
    description: '503 `not_ready` while it shuts down. Does not look at the upstream.',
    good: healthy('ready'),
  },
];
