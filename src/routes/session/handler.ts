import * as z from 'zod/mini';
import { GatewayError } from '../../core/errors.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { signIn } from '../../gateway/sign-in.ts';
import { jsonTextOf } from '../../middleware/body.ts';
import { credentialOf } from '../../middleware/headers.ts';
import { type Answer, jsonAnswer, NO_STORE, reply } from '../../middleware/reply.ts';
import type { ClientRequest } from '../../middleware/request.ts';
import { CLEARED, MAX_TOKEN, type Session, type Sessions } from '../../middleware/session.ts';
import { documented } from '../../upstream/fields.ts';
import { checkBody } from '../../upstream/input.ts';
import { operations } from '../../upstream/operations/index.ts';
import type { Route } from '../route.ts';

const PATH = '/bff/v1/session';

const key = z.string().check(z.regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters'), z.maxLength(MAX_TOKEN));

export const sessionBody = z.strictObject({
  token: documented(key, { description: 'a key of the upstream', examples: ['<TOKEN>'] }),
});

/** Sessions for browsers (`contract.md` section 8). */
export function sessionRoutes(gateway: Gateway, sessions: Sessions): Route[] {
  const tools = { gateway, sessions };
  return [
    at('GET', '', (request) => look(tools, request)),
    at('DELETE', '', (request) => signOut(tools, request)),
    at('POST', '', (request) => signInWithToken(tools, request)),
    at('POST', '/login', (request) => signInWith('loginSocial', tools, request)),
    at('POST', '/register', (request) => signInWith('registerSocial', tools, request)),
  ];
}

const at = (method: Route['method'], rest: string, answerOf: (request: ClientRequest) => Promise<Answer>): Route => ({
  method,
  path: PATH + rest,
  name: PATH + rest,
  operation: 'session',
  isSession: true,
  isRead: method === 'GET',
  handle: async (c) => reply(c, await answerOf(c.get('request'))),
});

interface Tools {
  readonly gateway: Gateway;
  readonly sessions: Sessions;
}

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

async function signInWith(
  name: 'loginSocial' | 'registerSocial',
  tools: Tools,
  request: ClientRequest,
): Promise<Answer> {
  const { gateway, sessions } = tools;
  sessions.checkOrigin(request);
  const input = async () => {
    request.checkIdempotencyKey();
    return { query: '', body: await jsonTextOf(request) };
  };
  const id = crypto.randomUUID();
  await gateway.sessions.prepare(request, id, false);
  const { text } = await gateway.write(operations[name], input, request);
  const answered = z.object({ token: key }).safeParse(JSON.parse(text ?? 'null'));
  if (answered.data) return begun(tools, request, { token: answered.data.token, id, isProven: true });
  throw GatewayError.of('upstream_bad_response', { detail: 'The upstream gave no token that fits into a cookie.' });
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
