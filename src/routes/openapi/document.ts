import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import { allOperations } from '../../upstream/operations/index.ts';
import { EXPOSED } from '../../middleware/cors.ts';
import { aboutPaths } from './about.ts';
import { batchPath } from '../batch/openapi.ts';
import { passthroughPaths } from '../passthrough/openapi.ts';
import { sessionPaths } from '../session/openapi.ts';
import { overviewPaths } from '../overviews/openapi.ts';
import { registerProblems } from './problem.ts';
import { componentSchemas, nameTableSchemas } from './schemas.ts';

/** How JavaScript keeps integers that it would round. */
const KEEPING_IDS =
  'JSON.parse(text, (_, value, { source }) => (/^-?\\d+$/.test(source) && !Number.isSafeInteger(value) ? source : value))';

const DESCRIPTION = `A backend-for-frontend gateway. Every endpoint of the upstream is here at its own path, with or
without the trailing slash, and its answers are the upstream's, digit for digit. Combinations of several are under \`/bff/v1\`.

**Credential.** \`Authorization: Token <key>\` or \`Authorization: Bearer <key>\`. Where \`SESSIONS\` is on, a browser on the
same site may use a session's cookie instead.

**Errors.** Every error is \`application/problem+json\` (RFC 9457) with a \`code\` that
\`/problems/{code}\` describes.

**Writes** are sent to the upstream once. A POST with an \`Idempotency-Key\` may be repeated for 24 hours, and gets
its first answer again. A write whose outcome nobody knows is a problem with \`"outcome":"unknown"\`. It is not sent again.

**Limits.** Each account has a limit of requests a minute. \`RateLimit\` and \`RateLimit-Policy\` say how many are left. 429 and 503
carry \`Retry-After\`, except for a write of unknown outcome.

**Ids** are integers that may go beyond 2^53 (\`format: int64\`). The gateway passes them on digit for digit, in answers and in
paths. JavaScript keeps 53 bits: \`JSON.parse\`, \`response.json()\` and clients generated from this document round longer ones,
and their types say \`number\`. If yours can be that large, read the text of the answer with
\`${KEEPING_IDS}\`
(or json-bigint), which leaves them as text.

**Browsers.** Pages of the origins that the operator has listed may call from there (CORS), problems and 304s included, and read
these headers: ${EXPOSED.replaceAll(/[\w-]+/g, '`$&`')}. A preflight needs no credential and allows what its path
takes: \`Authorization\`, the headers of its parameters, \`Content-Type\` with a body, \`X-Request-Id\`, \`traceparent\`,
\`tracestate\`. Without listed origins there is no CORS.

**Every answer** has an \`X-Request-Id\`, yours if you send one, and \`Server-Timing\`. HEAD works where GET does.
Query parameters that are not documented go to the upstream as they are.`;

const COMPOSED = 'Composed';
const SESSION = 'Session';
const ABOUT = 'About';

/** What the tags say; one that the table adds may do without. */
const TAGS: Readonly<Record<string, string>> = {
  [COMPOSED]: 'Several reads in one answer.',
  [SESSION]: 'Cookies for browsers, where `SESSIONS` is on: no script ever sees the key.',
  Account: 'API keys.',
  Billing: 'Subscription, plan, payment methods, transactions.',
  Referral: 'The referral and affiliate program.',
  Proxy: 'Sub-users, IP authorizations, list refresh, activity.',
  Notifications: 'What the account should know.',
  Verification: 'ID verification and account verification.',
  Social: 'Registration and login with an identity provider. No credential.',
  [ABOUT]: 'The gateway itself. No credential.',
};

const TOKEN = {
  type: 'apiKey',
  in: 'header',
  name: 'Authorization',
  description: '`Token <key>`, the word included.',
} as const;

const COOKIE = {
  type: 'apiKey',
  in: 'cookie',
  name: '__Host-Http-portico',
  description: 'A session, where `SESSIONS` is on.',
} as const;

const BEARER = { type: 'http', scheme: 'bearer', description: 'The key.' } as const;

/** The OpenAPI 3.1 document of all that the gateway answers, made anew. */
export function createOpenApiDocument(): object {
  const api = new OpenAPIHono();
  const registry = api.openAPIRegistry;
  registry.registerComponent('securitySchemes', 'Token', TOKEN);
  registry.registerComponent('securitySchemes', 'Bearer', BEARER);
  registry.registerComponent('securitySchemes', 'Session', COOKIE);
  registerProblems(registry);
  for (const path of allPaths()) registry.registerPath(path);
  for (const [name, schema] of Object.entries(componentSchemas())) registry.registerComponent('schemas', name, schema);
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Portico', version: '1', description: DESCRIPTION },
    servers: [{ url: '/' }],
    security: [{ Token: [] }, { Bearer: [] }, { Session: [] }],
    tags: allTags(),
  });
}

/** As every runtime answers it. */
export const openApiText = (): string => JSON.stringify(createOpenApiDocument());

/** In the order in which their paths come. */
function allTags() {
  const names = new Set([COMPOSED, SESSION, ...allOperations.map(({ tag }) => tag), ABOUT]);
  return Array.from(names, (name) => {
    const description = TAGS[name];
    return { name, ...(description !== undefined && { description }) };
  });
}

function allPaths(): RouteConfig[] {
  nameTableSchemas();
  return [
    ...overviewPaths(COMPOSED),
    batchPath(COMPOSED),
    ...sessionPaths(SESSION),
    ...passthroughPaths(),
    ...aboutPaths(ABOUT),
  ];
}
