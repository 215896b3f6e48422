import { expect, onTestFinished } from 'vitest';
import type { Store } from '../../src/store/port.ts';
import type { OperationId } from '../support/account-api.ts';
import { expectProblem, type Problem } from '../http/problem.ts';
import { exampleRequest } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { tokenOf } from '../support/marked.ts';
import type { RawResponse } from '../support/raw-client.ts';
import type { Call } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { type Env, openWorld, type World } from '../support/world.ts';

export const NAME = '__Host-Http-portico';
export const SESSION = '/bff/v1/session';
export const CLEARED = `${NAME}=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Strict`;
export const DAY = 86_400;
/** What a page of the gateway's own origin sends. */
export const OWN_PAGE = { 'Sec-Fetch-Site': 'same-origin' } as const;
/** What the account overview reads, cold. */
export const WARM_CALLS = 4;

export const overviewPaths = ['account', 'billing', 'referral'].map((name) => `/bff/v1/${name}-overview`);

export const isCallOf =
  (token: string) =>
  (to: Call): boolean =>
    tokenOf(to) === token;

/** `name=value` of the session that an answer sets. */
export function cookieIn(answer: Pick<TextAnswer, 'cookies' | 'status' | 'text'>): string {
  const [pair = ''] = answer.cookies[0]?.split(';') ?? [];
  if (!pair.startsWith(`${NAME}=`) || pair === `${NAME}=`)
    throw new Error(`no session: ${answer.status} ${answer.text}`);
  return pair;
}

export const valueIn = (cookie: string): string => cookie.slice(NAME.length + 1);

/** A request from a page of ours, by cookie. */
export const byCookie = (cookie: string, { headers, ...options }: CallOptions): CallOptions => ({
  ...options,
  headers: { ...OWN_PAGE, Cookie: cookie, ...headers },
});

export const signInWith = (token: unknown, { headers, ...options }: Partial<CallOptions> = {}): CallOptions => ({
  path: SESSION,
  body: { token },
  headers: { ...OWN_PAGE, ...headers },
  ...options,
});

export interface SessionWorld extends World {
  readonly secrets: string;
  /** Begins a session, and waits until the upstream was asked for all that is read in the background. */
  readonly signIn: (token?: string, options?: Partial<CallOptions>) => Promise<string>;
  /** A request from a page of ours. */
  readonly by: (cookie: string, options: CallOptions) => Promise<TextAnswer>;
  /** The operation's example request, by cookie. */
  readonly askBy: (cookie: string, id: OperationId, options?: Partial<CallOptions>) => Promise<TextAnswer>;
  /** Resolves with what was asked of the upstream meanwhile. */
  readonly sent: (act: () => Promise<unknown>) => Promise<readonly string[]>;
}

/** A world with sessions, whose upstream answers everything, each time with another mark. */
export async function openSessions(
  env: Env = {},
  options: Parameters<typeof openWorld>[1] = {},
): Promise<SessionWorld> {
  const secrets = env['SECRETS'] ?? secret('of-the-gateway-itself');
  const world = await openWorld({ SESSIONS: 'true', SECRETS: secrets, ...env }, options);
  let answers = 0;
  world.answerAll(() => ++answers);
  const by = (cookie: string, asked: CallOptions) => world.call(byCookie(cookie, asked));
  return {
    ...world,
    secrets,
    by,
    askBy: (cookie, id, asked = {}) => by(cookie, { ...exampleRequest(id), ...asked }),
    async signIn(token = world.token, asked = {}) {
      const answer = await world.call(signInWith(token, asked));
      await world.upstream.waitForCalls(WARM_CALLS, isCallOf(token));
      return cookieIn(answer);
    },
    async sent(act) {
      const before = world.upstream.calls.length;
      await act();
      return world.upstream.calls.slice(before).map(({ method, path }) => `${method} ${path}`);
    },
  };
}

/** Another gateway before the same upstream, with a store of its own unless it is given one. */
export async function gatewayBeside(
  world: SessionWorld,
  env: Env,
  { store, upstream = world.upstream.url }: { readonly store?: Store; readonly upstream?: string } = {},
): Promise<TestGateway> {
  const all = { SESSIONS: 'true', SECRETS: world.secrets, RATE_LIMIT_PER_MINUTE: '0', ...env };
  const gateway = await startGateway(upstream, {
    env: all,
    clock: world.clock,
    store: store ?? memoryStore(world.clock),
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

export const ask = (gateway: TestGateway, options: CallOptions): Promise<TextAnswer> => call(gateway.url, options);

interface Expected {
  readonly status: number;
  readonly code: string;
  /** Whether the browser is told to forget its session. */
  readonly isCleared: boolean;
}

/** A whole problem, with or without the end of the session in the browser. */
export function expectRefused(answer: TextAnswer | RawResponse, { isCleared, ...expected }: Expected): Problem {
  const { 'set-cookie': cookie, ...headers } = answer.headers;
  expect(cookie).toBe(isCleared ? CLEARED : undefined);
  return expectProblem({ ...answer, headers }, expected);
}

/** There is no session, or it is over. The browser keeps its cookie, which may be a newer one by then. */
export const expectOver = (answer: TextAnswer | RawResponse): Problem =>
  expectRefused(answer, { status: 401, code: 'unauthenticated', isCleared: false });
