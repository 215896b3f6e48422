import * as z from 'zod/mini';
import { GatewayError } from '../core/errors.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { sessionOver } from '../gateway/admission.ts';
import { checkIdempotencyKey, jsonTextOf } from '../http/body.ts';
import { credentialOf } from '../core/headers.ts';
import { type Answer, jsonAnswer, NO_STORE } from '../http/reply.ts';
import type { Session } from '../core/request.ts';
import type { HonoRequest } from '../http/request.ts';
import { checkOrigin, CLEARED, MAX_TOKEN, type Sessions } from '../http/session.ts';
import { documented } from '../upstream/fields.ts';
import { checkBody, checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { Table } from '../upstream/table.ts';
import type { Description } from './openapi.ts';
import { type Route, routeOf } from './route.ts';

const key = z.string().check(z.regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters'), z.maxLength(MAX_TOKEN));

const given = documented(key, { description: 'a key of the upstream', examples: ['<TOKEN>'] });
const sessionBody = documented(z.strictObject({ token: given }), { id: 'NewSession' });

const everywhere = documented(z.enum(['true', 'false']), { description: 'whether every session of this key ends' });

type AnswerOf = (request: HonoRequest, gateway: Gateway, sessions: Sessions) => Promise<Answer>;

async function look(request: HonoRequest, gateway: Gateway, sessions: Sessions): Promise<Answer> {
  await sessions.enter(request);
  const { session } = request;
  checkAuthorization(request);
  if (!session) return jsonAnswer({ authenticated: false });
  await gateway.admit(request);
  return jsonAnswer(stateOf(session, await gateway.accountOf(request)));
}

/** Beside `Authorization` the cookie is not looked at, so the header has to be a good one. @throws GatewayError `unauthenticated` */
function checkAuthorization(request: HonoRequest): void {
  const authorization = request.header('authorization');
  if (authorization !== undefined) credentialOf(authorization);
}

const stateOf = ({ expiresAt }: Session, account: string) => ({
  authenticated: true,
  expires_at: new Date(expiresAt * 1000).toISOString(),
  account,
});

/** Ends the session, and takes the cookie from the browser, whatever was in it. */
async function signOut(request: HonoRequest, gateway: Gateway, sessions: Sessions): Promise<Answer> {
  const cookie = sessions.cookieIn(request);
  checkOrigin(request);
  checkAuthorization(request);
  checkInput({ query: { everywhere } }, { query: request.query });
  const isEverywhere = new URLSearchParams(request.query).get('everywhere') === 'true';
  try {
    if (cookie !== undefined) await end(await sessions.open(cookie), request, gateway, isEverywhere);
  } catch (error) {
    const isOver = error instanceof GatewayError && error.code === 'unauthenticated';
    if (isEverywhere || !isOver) throw error; // a cookie that is over cannot end other sessions
  }
  return { status: 204, headers: { ...NO_STORE, 'Set-Cookie': CLEARED, 'Clear-Site-Data': '"cache"' }, body: null };
}

/** Ends a session. @throws GatewayError `unauthenticated` if it is over already, `store_unavailable` if not all instances know that it ends */
async function end(session: Session, request: HonoRequest, gateway: Gateway, isEverywhere: boolean): Promise<void> {
  request.session = session;
  const { account, isOver } = await gateway.sessions.signingOut(request, session);
  // A session that is over is reported once more: perhaps only this instance knows of it.
  const which = isEverywhere && !isOver ? 'all' : 'one';
  const isKnown = await gateway.sessions.revoke(request, account, session, which);
  if (!isKnown) throw GatewayError.of('store_unavailable', { retryAfter: 1, headers: { 'Set-Cookie': CLEARED } });
  if (isOver) throw sessionOver();
}

type TokenOf = (request: HonoRequest, gateway: Gateway) => Promise<string>;

/** Begins a session, and ends the one that the browser had before. */
const beginningWith =
  (tokenOf: TokenOf, isProven: boolean): AnswerOf =>
  async (request, gateway, sessions) => {
    checkOrigin(request);
    await gateway.sessions.prepare(request, !isProven);
    const token = await tokenOf(request, gateway);
    const former = await sessions.former(request);
    const { account, epoch } = await gateway.sessions.begin(request, { token, isProven });
    if (former) await gateway.sessions.revoke(request, await gateway.sessions.accountOf(former.token), former, 'one');
    const session = sessions.begin(crypto.randomUUID(), epoch, token);
    const { body, headers } = jsonAnswer(stateOf(session, account));
    return { status: 201, headers: { ...headers, 'Set-Cookie': await sessions.cookieOf(session) }, body };
  };

const tokenInBody: TokenOf = async (request) => checkBody(sessionBody, (await jsonTextOf(request)) ?? '').token;

const tokenFrom =
  (operation: Operation, member: string): TokenOf =>
  async (request, gateway) => {
    const input = async () => {
      checkIdempotencyKey(request.idempotencyKey);
      return { query: '', body: await jsonTextOf(request) };
    };
    const written = await gateway.writes.write(request, operation, input);
    const { data } = z.object({ [member]: key }).safeParse(JSON.parse(written.text ?? 'null'));
    if (data?.[member] !== undefined) return data[member];
    throw GatewayError.of('upstream_bad_response', { detail: 'The upstream gave no token that fits into a cookie.' });
  };

const PATH = '/bff/v1/session';

const withCookie = (
  method: 'get' | 'delete',
  operationId: string,
  summary: string,
  details: Description['details'],
): Description => ({
  tags: ['Session'],
  security: [{ Session: [] }, {}],
  method,
  path: PATH,
  operationId,
  summary,
  details,
});

const beginning = (rest: string, operationId: string, summary: string, body: z.core.$ZodType): Description => ({
  tags: ['Session'],
  method: 'post',
  path: PATH + rest,
  operationId,
  security: [],
  summary,
  details: (doc) => doc.begin(body),
});

type Call = readonly [Description, AnswerOf];

/** The call that begins a session by an upstream call that gives the token. */
function beginningBy(operation: Operation): Call[] {
  const { signsIn, summary, body } = operation;
  if (!signsIn || !body) return [];
  const { as, token } = signsIn;
  return [
    [beginning(`/${as}`, `${as}Session`, summary, body.schema), beginningWith(tokenFrom(operation, token), true)],
  ];
}

/** All session calls: descriptions, and the functions that answer. */
export const sessionCallsOf = ({ operations }: Table): readonly Call[] => [
  [withCookie('get', 'getSession', 'Whether this browser is signed in', (doc) => doc.look()), look],
  [beginning('', 'createSession', 'Sign in with a key', sessionBody), beginningWith(tokenInBody, false)],
  ...operations.flatMap(beginningBy),
  [withCookie('delete', 'deleteSession', 'Sign out', (doc) => doc.end({ everywhere })), signOut],
];

/** Sessions for browsers (`contract.md` section 8), where `SESSIONS` is on. */
export const sessionRoutes = (gateway: Gateway, table: Table, sessions: Sessions): Route[] =>
  sessionCallsOf(table).map(([description, answerOf]) =>
    routeOf(description, {
      operation: 'session',
      isSession: true,
      mayBeCompressed: false,
      handle: (request) => answerOf(request, gateway, sessions),
    }),
  );
