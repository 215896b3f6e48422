import * as z from 'zod/mini';
import { jsonAnswer } from '../middleware/reply.ts';
import { model, text } from '../upstream/fields.ts';
import { about, htmlAnswer, pageAt } from './route.ts';

const LINKS = { name: 'Portico', docs: '/docs', openapi: '/openapi.json', problems: '/problems' } as const;

const PAGE = htmlAnswer(
  'Portico',
  '',
  '',
  `<h1>Portico</h1>
<p>A backend-for-frontend gateway. It is running.</p>
<ul>
<li><a href="${LINKS.docs}">Every call, with its parameters and answers</a></li>
<li><a href="${LINKS.openapi}">The same as OpenAPI 3.1</a></li>
<li><a href="${LINKS.problems}">What each error code means</a></li>
</ul>`,
);

const linksSchema = model('Links', {
  name: z.literal(LINKS.name),
  docs: text('path', LINKS.docs),
  openapi: text('path', LINKS.openapi),
  problems: text('path', LINKS.problems),
});

export const homeDescription = about('/', 'getHome', 'Start page', (doc) => {
  const content = { 'text/html': {}, ...doc.json(linksSchema, LINKS) };
  return doc.good('A page; as JSON if `Accept` asks for JSON and not for HTML.', content);
});

/** Where to read on, as a page, or as JSON for whoever asks for JSON and not for HTML. */
export const homeRoute = pageAt(homeDescription.path, async (request) => {
  const accept = request.header('accept') ?? '';
  const wantsJson = /\bjson\b/i.test(accept) && !/\btext\/html\b/i.test(accept);
  const { headers, ...answer } = wantsJson ? jsonAnswer(LINKS, { 'Cache-Control': 'no-cache' }) : PAGE;
  return { ...answer, headers: { ...headers, Vary: 'Accept' } };
});
