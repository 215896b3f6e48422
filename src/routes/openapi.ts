import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod/mini';
import { ERROR_CODES } from '../core/errors.ts';
import { EXPOSED } from '../http/cors.ts';
import type { Table } from '../upstream/table.ts';
import { answersOf, type Doc, doc, jsonSchemaOf, referred, shared } from './details.ts';

/** A route: what the app mounts it by, and what the document tells of it besides. */
export interface Description extends Pick<RouteConfig, 'method' | 'path' | 'operationId' | 'summary' | 'security'> {
  readonly tags: string[];
  /** Called for the document only. */
  readonly details: (doc: Doc) => Pick<RouteConfig, 'description' | 'parameters' | 'request' | 'responses'>;
}

/** How JavaScript keeps integers that it would round. */
const KEEPING_IDS =
  'JSON.parse(text, (_, value, { source }) => (/^-?\\d+$/.test(source) && !Number.isSafeInteger(value) ? source : value))';

const DESCRIPTION = `A backend-for-frontend gateway. Every endpoint of the upstream is here at its own path, with or
without the trailing slash, and its answers are the upstream's, digit for digit. Combinations of several are under \`/bff/v1\`.

**Writes** are sent to the upstream once. A POST with an \`Idempotency-Key\` may be repeated for 24 hours, and gets
its first answer again. A write whose outcome nobody knows is a problem with \`"outcome":"unknown"\`. It is not sent again.

**Ids** that are integers may go beyond 2^53 (\`format: int64\`). The gateway passes them on digit for digit, in answers and in
paths. JavaScript keeps 53 bits: \`JSON.parse\`, \`response.json()\` and clients generated from this document round longer ones,
and their types say \`number\`. If yours can be that large, read the text of the answer with
\`${KEEPING_IDS}\`
(or json-bigint), which leaves them as text.

**Browsers.** Pages of the origins that the operator has listed may call from there (CORS), problems and 304s included, and read
these headers: ${EXPOSED.replaceAll(/[\w-]+/g, '`$&`')}. A preflight needs no
credential and names all methods and headers that the gateway takes. Without listed origins there is no CORS.

**Every answer** has an \`X-Request-Id\`, yours if you send one, \`Server-Timing\`, and \`RateLimit\` where a limit applies. HEAD works
where GET does. Query parameters that are not documented go to the upstream as they are.`;

/** Tags in the order of the document, each once. */
const tagsOf = ({ operations }: Table) =>
  [
    ...new Map([
      ['Composed', 'Several reads in one answer.'],
      ['Writes', 'What became of them.'],
      ['Session', 'Cookies for browsers, where `SESSIONS` is on: no script ever sees the key.'],
      ...operations.map(({ tag }) => [tag.name, tag.description] as const),
      ['About', 'The gateway itself. No credential.'],
    ] as const),
  ].map(([name, description]) => ({ name, description }));

const CREDENTIALS = {
  Token: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`Token <key>`, the word included.' },
  Bearer: { type: 'http', scheme: 'bearer', description: 'The key.' },
  Session: { type: 'apiKey', in: 'cookie', name: '__Host-Http-portico', description: 'Where `SESSIONS` is on.' },
} as const;

/** The OpenAPI 3.1 document of all that the gateway answers. Loaded when it is first asked for. */
export function documentOf(routes: readonly Description[], table: Table): object {
  const api = new OpenAPIHono();
  const registry = api.openAPIRegistry;
  referred.clear();
  for (const { details, ...head } of routes) {
    const { responses, ...about } = details(doc);
    registry.registerPath({ ...head, ...about, responses: { ...responses, default: shared('Problem') } });
  }
  for (const [name, scheme] of Object.entries(CREDENTIALS)) registry.registerComponent('securitySchemes', name, scheme);
  for (const [name, answer] of Object.entries(answersOf(table))) registry.registerComponent('responses', name, answer);
  // zod itself makes the schema: zod-to-openapi reads none of zod/mini.
  const schemas = jsonSchemaOf(z.union([...referred])).$defs ?? {};
  const codes = [...new Set([...ERROR_CODES, ...table.refusals.keys()])]; // an enum has each once
  for (const [name, schema] of Object.entries(schemas))
    registry.registerComponent('schemas', name, name === 'ProblemCode' ? { ...schema, enum: codes } : schema);
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Portico', version: '1', description: DESCRIPTION },
    servers: [{ url: '/' }],
    security: [{ Token: [] }, { Bearer: [] }, { Session: [] }],
    tags: tagsOf(table),
  });
}
