import { jsonAnswer } from '../middleware/reply.ts';
import { pageAt } from './route.ts';

const LINKS = { docs: '/docs', openapi: '/openapi.json', problems: '/problems' } as const;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Portico</title>
<link rel="icon" href="data:,">
</head>
<body>
<h1>Portico</h1>
<p>A backend-for-frontend gateway. It is running.</p>
<ul>
<li><a href="${LINKS.docs}">Every call, with its parameters and answers</a></li>
<li><a href="${LINKS.openapi}">The same as OpenAPI 3.1</a></li>
<li><a href="${LINKS.problems}">What each error code means</a></li>
</ul>
</body>
</html>
`;

const HEADERS = { 'Cache-Control': 'no-cache', Vary: 'Accept' } as const;
const HTML = {
  ...HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
} as const;

/** `GET /`: where to read on, as a page, or as JSON for whoever asks for JSON and not for HTML. */
export const homeRoute = pageAt('/', async (request) => {
  const accept = request.header('accept') ?? '';
  const wantsJson = /\bjson\b/i.test(accept) && !/\btext\/html\b/i.test(accept);
  return wantsJson ? jsonAnswer({ name: 'Portico', ...LINKS }, HEADERS) : { status: 200, headers: HTML, body: PAGE };
});
