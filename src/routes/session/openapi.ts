import * as z from 'zod/mini';
import { documented, model, text, timestamp } from '../../upstream/fields.ts';
import { operations } from '../../upstream/operations/index.ts';
import type { Description } from '../openapi.ts';
import { sessionBody } from './handler.ts';

const begun = model('Session', {
  authenticated: z.literal(true),
  expires_at: timestamp('when the cookie expires unless it is used', '2026-11-29T18:09:43.000Z'),
  account: text('the same for every session of a key', 'V-64kLo1mift-T1IVWdr9SMDAe4rIjpOFrOy0tkUS-A'),
});

const state = documented(z.union([begun, z.object({ authenticated: z.literal(false) })]), { id: 'SessionState' });

const SET_COOKIE = { description: 'The session, for browsers only.', schema: { type: 'string' } } as const;

const PATH = '/bff/v1/session';
const COMMON = { tags: ['Session'], path: PATH, security: [{ Session: [] }, {}] };

const signIn = (rest: string, operationId: string, summary: string, body: z.core.$ZodType): Description => ({
  ...COMMON,
  method: 'post',
  path: PATH + rest,
  operationId,
  security: [],
  summary,
  details(doc) {
    const description = 'Signed in. The key is in the cookie and nowhere else.';
    const headers = { ...doc.unstored, 'Set-Cookie': SET_COOKIE };
    return {
      request: { body: { required: true, content: doc.json(body) } },
      responses: { 201: { description, headers, content: doc.json(begun) }, ...doc.refused },
    };
  },
});

const look: Description = {
  ...COMMON,
  method: 'get',
  operationId: 'getSession',
  summary: 'Whether this browser is signed in',
  details(doc) {
    const content = doc.json(state, { authenticated: false });
    return { responses: { 200: { description: 'Whether it is.', headers: doc.unstored, content }, ...doc.refused } };
  },
};

const everywhere = documented(z.enum(['true', 'false']), { description: 'whether every session of this key ends' });

const signOut: Description = {
  ...COMMON,
  method: 'delete',
  operationId: 'deleteSession',
  summary: 'Sign out',
  details(doc) {
    const gone = { description: 'Signed out. The cookie is cleared.', headers: { 'Set-Cookie': SET_COOKIE } };
    return { parameters: doc.parameters('query', { everywhere }), responses: { 204: gone, ...doc.refused } };
  },
};

const { loginSocial: login, registerSocial: register } = operations;

/** Where `SESSIONS` is on (`contract.md` section 8). */
export const sessionDescriptions: readonly Description[] = [
  look,
  signIn('', 'createSession', 'Sign in with a key', documented(sessionBody, { id: 'NewSession' })),
  signIn('/login', 'loginSession', 'Sign in with a social identity provider', login.body.schema),
  signIn('/register', 'registerSession', 'Register with a social identity provider', register.body.schema),
  signOut,
];
