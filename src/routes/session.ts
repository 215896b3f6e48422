import * as z from 'zod/mini';
import { GatewayError } from '../core/errors.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { signIn } from '../gateway/sign-in.ts';
import { jsonTextOf } from '../middleware/body.ts';
import { credentialOf } from '../middleware/headers.ts';
import { type Answer, jsonAnswer, NO_STORE, reply } from '../middleware/reply.ts';
import type { ClientRequest } from '../middleware/request.ts';
import { CLEARED, MAX_TOKEN, type Session, type Sessions } from '../middleware/session.ts';
import { documented, model, text, timestamp } from '../upstream/fields.ts';
import { checkBody } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import { operations } from '../upstream/operations/index.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';

const PATH = '/bff/v1/session';

const key = z.string().check(z.regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters'), z.maxLength(MAX_TOKEN));

const sessionBody = z.strictObject({
  token: documented(key, { description: 'a key of the upstream', examples: ['<TOKEN>'] }),
});

interface Tools {
  readonly gateway: Gateway;
  readonly sessions: Sessions;
}

type AnswerOf = (tools: Tools, request: ClientRequest) => Promise<Answer>;

async function look({ gateway, sessions }: Tools, request: ClientRequest): Promise<Answer> {
  await sessions.enter(request);
  const { session } = request;
  const authorization = request.header('authorization');
  if (authorization !== undefined) credentialOf(authorization); // the cookie is not looked at
  if (!session) return jsonAnswer({ authenticated: false });
  const { account } = await gateway.reader(request);
  return jsonAnswer(stateOf(session, account));
}

const stateOf = ({ expiresAt }: Session, account: string) => ({
  authenticated: true,
  expires_at: new Date(expiresAt * 1000).toISOString(),
  account,
});

/** The cookie of this browser is gone, whatever was in it. */
async function signOut(tools: Tools, request: ClientRequest): Promise<Answer> {
  const { gateway, sessions } = tools;
  const cookie = sessions.cookieIn(request);
  sessions.checkOrigin(request);
  const authorization = request.header('authorization');
  if (authorization !== undefined) credentialOf(authorization);
  const everywhere = everywhereOf(request.query);
  const living = cookie === undefined ? undefined : await livingIn(cookie, { tools, request, everywhere });
  if (living) {
    const { account, session } = living;
    const revoked = everywhere ? { epoch: session.epoch + 1 } : session;
    const isKnown = await gateway.sessions.revoke(request, account, revoked);
    if (!isKnown) throw GatewayError.of('store_unavailable', { retryAfter: 1, headers: { 'Set-Cookie': CLEARED } });
  }
  return { status: 204, headers: { ...NO_STORE, 'Set-Cookie': CLEARED, 'Clear-Site-Data': '"cache"' }, body: null };
}

interface SigningOut {
  readonly tools: Tools;
  readonly request: ClientRequest;
  readonly everywhere: boolean;
}

/**
 * The session in a cookie; undefined if it is over or cannot be opened.
 * @throws GatewayError `unauthenticated` then, if `everywhere`: such a cookie ends no other session
 */
async function livingIn(cookie: string, { tools: { gateway, sessions }, request, everywhere }: SigningOut) {
  try {
    const session = await sessions.open(cookie);
    request.session = session;
    return { session, account: await gateway.sessions.assertOpen(request, session) };
  } catch (error) {
    const isOver = error instanceof GatewayError && error.code === 'unauthenticated';
    if (everywhere || !isOver) throw error;
    return undefined;
  }
}

/** @throws GatewayError `validation_failed` */
function everywhereOf(query: string): boolean {
  const value = new URLSearchParams(query).get('everywhere');
  if (value === null || value === 'true' || value === 'false') return value === 'true';
  const error = { code: 'invalid_value', message: 'expected true or false', field: 'everywhere' };
  throw GatewayError.of('validation_failed', { errors: [error] });
}

async function signInWithToken(tools: Tools, request: ClientRequest): Promise<Answer> {
  const { gateway, sessions } = tools;
  sessions.checkOrigin(request);
  const id = crypto.randomUUID();
  await gateway.sessions.prepare(request, id, true);
  const { token } = checkBody(sessionBody, (await jsonTextOf(request)) ?? '');
  return begun(tools, request, { token, id, isProven: false });
}

function signInWith(operation: Operation): AnswerOf {
  return async (tools, request) => {
    const { gateway, sessions } = tools;
    sessions.checkOrigin(request);
    const input = async () => {
      request.checkIdempotencyKey();
      return { query: '', body: await jsonTextOf(request) };
    };
    const id = crypto.randomUUID();
    await gateway.sessions.prepare(request, id, false);
    const written = await gateway.write(operation, input, request);
    const answered = z.object({ token: key }).safeParse(JSON.parse(written.text ?? 'null'));
    if (answered.data) return begun(tools, request, { token: answered.data.token, id, isProven: true });
    throw GatewayError.of('upstream_bad_response', { detail: 'The upstream gave no token that fits into a cookie.' });
  };
}

/** The session that the browser had before, if any, is over once this one has begun. */
async function begun(
  { gateway, sessions }: Tools,
  request: ClientRequest,
  wanted: { readonly token: string; readonly id: string; readonly isProven: boolean },
): Promise<Answer> {
  const former = await sessions.former(request);
  const { account, epoch } = await signIn(gateway, request, wanted);
  if (former) await gateway.sessions.revoke(request, await gateway.sessions.accountOf(former.token), former);
  const session = sessions.begin(wanted.id, epoch, wanted.token);
  const { body, headers } = jsonAnswer(stateOf(session, account));
  return { status: 201, headers: { ...headers, 'Set-Cookie': await sessions.cookieOf(session) }, body };
}

const begunSchema = model('Session', {
  authenticated: z.literal(true),
  expires_at: timestamp('when the cookie expires unless it is used', '2026-11-29T18:09:43.000Z'),
  account: text('the same for every session of a key', 'V-64kLo1mift-T1IVWdr9SMDAe4rIjpOFrOy0tkUS-A'),
});

const stateSchema = documented(z.union([begunSchema, z.object({ authenticated: z.literal(false) })]), {
  id: 'SessionState',
});

const SET_COOKIE = { description: 'The session, for browsers only.', schema: { type: 'string' } } as const;

const COMMON = { tags: ['Session'], path: PATH, security: [{ Session: [] }, {}] };

const beginning = (rest: string, operationId: string, summary: string, body: z.core.$ZodType): Description => ({
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
      responses: { 201: { description, headers, content: doc.json(begunSchema) }, ...doc.refused },
    };
  },
});

const looking: Description = {
  ...COMMON,
  method: 'get',
  operationId: 'getSession',
  summary: 'Whether this browser is signed in',
  details(doc) {
    const content = doc.json(stateSchema, { authenticated: false });
    return { responses: { 200: { description: 'Whether it is.', headers: doc.unstored, content }, ...doc.refused } };
  },
};

const everywhere = documented(z.enum(['true', 'false']), { description: 'whether every session of this key ends' });

const ending: Description = {
  ...COMMON,
  method: 'delete',
  operationId: 'deleteSession',
  summary: 'Sign out',
  details(doc) {
    const gone = { description: 'Signed out. The cookie is cleared.', headers: { 'Set-Cookie': SET_COOKIE } };
    return { parameters: doc.parameters('query', { everywhere }), responses: { 204: gone, ...doc.refused } };
  },
};

const { loginSocial, registerSocial } = operations;
const newSession = documented(sessionBody, { id: 'NewSession' });
const WITH_LOGIN = 'Sign in with a social identity provider';
const WITH_REGISTER = 'Register with a social identity provider';

/** What there is, and what answers it. */
const calls: readonly (readonly [Description, AnswerOf])[] = [
  [looking, look],
  [beginning('', 'createSession', 'Sign in with a key', newSession), signInWithToken],
  [beginning('/login', 'loginSession', WITH_LOGIN, loginSocial.body.schema), signInWith(loginSocial)],
  [beginning('/register', 'registerSession', WITH_REGISTER, registerSocial.body.schema), signInWith(registerSocial)],
  [ending, signOut],
];

export const sessionDescriptions = calls.map(([description]) => description);

/** Sessions for browsers (`contract.md` section 8), where `SESSIONS` is on. */
export const sessionRoutes = (gateway: Gateway, sessions: Sessions): Route[] =>
  calls.map(([description, answerOf]) =>
    routeOf(description, {
      operation: 'session',
      isSession: true,
      handle: async (c) => reply(c, await answerOf({ gateway, sessions }, c.get('request'))),
    }),
  );
