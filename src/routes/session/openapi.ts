import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { documented, text, timestamp } from '../../upstream/fields.ts';
import { operations } from '../../upstream/operations/index.ts';
import { UNSTORED } from '../openapi/headers.ts';
import { limitedAnswer, problemAnswers, refusedAnswer } from '../openapi/problem.ts';
import { jsonContent } from '../openapi/schemas.ts';
import { sessionBody } from './handler.ts';

const newSession = documented(sessionBody, { id: 'NewSession' });

const begunSession = z
  .object({
    authenticated: z.literal(true),
    expires_at: timestamp('when the cookie expires unless it is used', '2026-11-29T18:09:43.000Z'),
    account: text('the same for every session of a key', 'V-64kLo1mift-T1IVWdr9SMDAe4rIjpOFrOy0tkUS-A'),
  })
  .meta({ id: 'Session' });

const noSession = z.object({ authenticated: z.literal(false) });

const session = z.union([begunSession, noSession]).meta({ id: 'SessionState' });

const SET_COOKIE = { description: 'The session, for browsers only.', schema: { type: 'string' } } as const;

type Path = Omit<RouteConfig, 'tags' | 'responses'> & Pick<RouteConfig, 'responses'>;

const BEGUN = {
  description: 'Signed in. The key is in the cookie and nowhere else.',
  headers: { ...UNSTORED, 'Set-Cookie': SET_COOKIE },
  content: jsonContent(begunSession),
};

const signIn = (rest: string, operationId: string, summary: string, body: z.core.$ZodType): Path => ({
  method: 'post',
  path: `/bff/v1/session${rest}`,
  operationId,
  security: [],
  summary,
  request: { body: { required: true, content: jsonContent(body) } },
  responses: { 201: BEGUN, ...limitedAnswer },
});

const look: Path = {
  method: 'get',
  path: '/bff/v1/session',
  operationId: 'getSession',
  security: [{ Session: [] }, {}],
  summary: 'Whether this browser is signed in',
  responses: {
    200: { description: 'Whether it is.', headers: UNSTORED, content: jsonContent(session, { authenticated: false }) },
  },
};

const everywhere = z.enum(['true', 'false']).optional().meta({ description: 'whether every session of this key ends' });

const signOut: Path = {
  method: 'delete',
  path: '/bff/v1/session',
  operationId: 'deleteSession',
  security: [{ Session: [] }, {}],
  summary: 'Sign out',
  request: { query: z.object({ everywhere }) },
  responses: { 204: { description: 'Signed out. The cookie is cleared.', headers: { 'Set-Cookie': SET_COOKIE } } },
};

/** Where `SESSIONS` is on (`contract.md` section 8). Call after the table's schemas have names. */
export function sessionPaths(tag: string): RouteConfig[] {
  const { loginSocial: login, registerSocial: register } = operations;
  const paths = [
    look,
    signIn('', 'createSession', 'Sign in with a key', newSession),
    signIn('/login', 'loginSession', 'Sign in with a social identity provider', login.body.schema),
    signIn('/register', 'registerSession', 'Register with a social identity provider', register.body.schema),
    signOut,
  ];
  return paths.map((path) => ({
    ...path,
    tags: [tag],
    responses: { ...path.responses, ...refusedAnswer, ...problemAnswers },
  }));
}
