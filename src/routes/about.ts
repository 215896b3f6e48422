import * as z from 'zod/mini';
import { documented, model, text } from '../upstream/fields.ts';
import type { Description, Doc } from './openapi.ts';
import { descriptionOf, ownProblems, problemSchema } from './problems.ts';

const CODE = 'paid_plan_active';

const ofProblem = { type: true, title: true, status: true, code: true, detail: true, retryable: true } as const;

const told = documented(z.partial(z.pick(problemSchema, ofProblem), { status: true }), {
  id: 'ProblemDescription',
  description: 'A code of the upstream’s own has no status here.',
});

const links = { name: 'Portico', docs: '/docs', openapi: '/openapi.json', problems: '/problems' } as const;

const linksSchema = model('Links', {
  name: z.literal(links.name),
  docs: text('path', links.docs),
  openapi: text('path', links.openapi),
  problems: text('path', links.problems),
});

const documentSchema = documented(z.looseObject({ openapi: text('version', '3.1.0') }), { id: 'OpenApiDocument' });
const listSchema = model('ProblemList', { problems: z.array(told) });
const healthSchema = model('Health', { status: z.enum(['live', 'ready']) });
const code = documented(z.string(), { description: '`code` of a problem', examples: [CODE] });

/** What tells of the gateway itself. Takes no credential. */
const page = (path: string, operationId: string, summary: string, details: Description['details']): Description => {
  return { method: 'get', path, operationId, tags: ['About'], summary, security: [], details };
};

const good = (description: string, content: Record<string, object>) => ({
  responses: { 200: { description, content } },
});

const health = (doc: Doc, status: 'live' | 'ready') => ({
  responses: { 200: { description: 'It is.', headers: doc.unstored, content: doc.json(healthSchema, { status }) } },
});

export const aboutDescriptions: readonly Description[] = [
  page('/', 'getHome', 'Start page', (doc) =>
    good('A page; as JSON if `Accept` asks for JSON and not for HTML.', {
      'text/html': {},
      ...doc.json(linksSchema, links),
    }),
  ),
  page('/problems', 'listProblems', 'All problem codes of the gateway', (doc) =>
    good('All codes, each with its title, status and description.', doc.json(listSchema, { problems: ownProblems() })),
  ),
  page('/problems/{code}', 'getProblem', 'What a problem code means', (doc) => ({
    description: "A code of the upstream's own is described once this instance has sent it, and is a 404 before.",
    parameters: doc.parameters('path', { code }),
    ...good('Its title, status and description.', doc.json(told, descriptionOf(CODE))),
  })),
  page('/openapi.json', 'getOpenApiDocument', 'This document', (doc) => good('OpenAPI 3.1.', doc.json(documentSchema))),
  page('/docs', 'getDocsPage', 'This document as a page', () =>
    good('A page that needs nothing from any other host.', { 'text/html': {} }),
  ),
  page('/livez', 'getLiveness', 'Whether this instance runs', (doc) => health(doc, 'live')),
  page('/readyz', 'getReadiness', 'Whether this instance takes requests', (doc) => ({
    description: '503 `not_ready` while it shuts down. Does not look at the upstream.',
    ...health(doc, 'ready'),
  })),
];
