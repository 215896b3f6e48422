import { expect } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { exampleRequest } from '../../support/examples.ts';
import type { Answer, Asked, Asking } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere as onAllStages } from '../../support/stages.ts';
import type { Upstream } from '../../support/upstream.ts';

export const NAME = '__Host-Http-portico';
export const SESSION = '/bff/v1/session';
export const OVERVIEW = '/bff/v1/account-overview';
export const SUBSCRIPTION = '/api/v2/subscription/';
export const CLEARED = `${NAME}=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Strict`;
export const DAY = 86_400;
export const LISTED = 'https://app.example';

/** One set for all files, so that one workerd is enough. */
export const env = { SESSIONS: 'true', SECRETS: secret('of-gateways-with-sessions'), ALLOWED_ORIGINS: LISTED } as const;

/** What a page of the gateway's own origin sends. */
const OWN_PAGE = { 'sec-fetch-site': 'same-origin' } as const;

/** What the account overview reads. */
export const WARM = ['getSubscription', 'listPaymentMethods', 'listNotifications', 'getReferralConfig'] as const;

export const SIGN_OUT = { method: 'DELETE' } as const;
export const EVERYWHERE = `${SESSION}?everywhere=true`;

export const cookiesOf = ({ headers }: Answer): readonly string[] => headers.getSetCookie();

/** `name=value` of the session that an answer sets. */
export function cookieIn(answer: Answer): string {
  const pair = cookiesOf(answer).at(-1)?.split(';')[0] ?? '';
  if (!/=./.test(pair)) throw new Error(`no session: ${answer.status} ${answer.text}`);
  return pair;
}

export const valueIn = (cookie: string): string => cookie.slice(NAME.length + 1);

/** Resolves once all that a sign-in reads in the background was asked for with this key. */
export async function warmed(upstream: Upstream, token: string): Promise<void> {
  for (const id of WARM)
    while (upstream.callsOf(token, id).length === 0) await upstream.arrived(id, upstream.callsTo(id).length + 1);
}

/** A page of the gateway's own origin. */
export function browserOf({ call, upstream, me }: Pick<Asked, 'call' | 'upstream' | 'me'>) {
  const page: Asked['call'] = (path, { headers, ...asking } = {}) =>
    call(path, { token: null, ...asking, headers: { ...OWN_PAGE, ...headers } });
  const by = (cookie: string, path: string, { headers, ...asking }: Asking = {}) =>
    page(path, { ...asking, headers: { cookie, ...headers } });
  return {
    /** Without a cookie. */
    page,
    by,
    askBy: (cookie: string, id: OperationId, asking: Asking = {}) =>
      by(cookie, exampleRequest(id).path, { ...exampleRequest(id), ...asking }),
    look: (cookie: string) => by(cookie, SESSION),
    signOut: (cookie: string, path = SESSION) => by(cookie, path, SIGN_OUT),
    /** Begins a session, and waits for what is read in the background. `old`: the cookie of another one. */
    signIn: async (token = me, old?: string): Promise<string> => {
      const headers = old === undefined ? {} : { cookie: old };
      const answer = await page(SESSION, { body: { token }, headers });
      await warmed(upstream, token);
      return cookieIn(answer);
    },
  };
}

export type Browser = ReturnType<typeof browserOf>;

/** There is no session, or it is over. The browser keeps its cookie, which may be a newer one by then. */
export function expectOver(answer: Answer): void {
  expect([answer.status, answer.code, cookiesOf(answer)]).toEqual([401, 'unauthenticated', []]);
  expect(answer.headers.get('www-authenticate')).toBe('Token');
}

/** As `by` takes it behind the cookie. */
export type Request = readonly [path: string, asking?: Asking];

export const example = (id: OperationId, more: Asking = {}): Request => [
  exampleRequest(id).path,
  { ...exampleRequest(id), ...more },
];

export const batch = (...ids: OperationId[]): Request => [
  '/bff/v1/batch',
  { body: { requests: ids.map((id) => ({ id, path: exampleRequest(id).path })) } },
];

/** One of each method, and a purchase. */
const BY_COOKIE = ['getApiKey', 'createApiKey', 'updateReferralConfig', 'purchasePlan', 'deletePaymentMethod'] as const;

/** Some of each kind of what takes a session. */
const WAYS: readonly Request[] = [
  [SESSION],
  [SUBSCRIPTION],
  ...BY_COOKIE.map((id) => example(id)),
  [OVERVIEW],
  [OVERVIEW, { headers: { accept: 'application/x-ndjson' } }],
  batch('getSubscription'),
  [EVERYWHERE, SIGN_OUT],
];

/** What was read with this key so far, each once. */
export function expectRead(upstream: Upstream, token: string, ids: readonly OperationId[] = WARM): void {
  const found = upstream.callsOf(token).map(({ id }) => id);
  expect([found.length, new Set(found)]).toEqual([ids.length, new Set(ids)]);
}

/** Nothing comes by this cookie, and the upstream hears nothing. */
export async function expectEnded({ by }: Browser, upstream: Upstream, cookie: string): Promise<void> {
  const before = upstream.calls.length;
  for (const [path, asking] of WAYS) expectOver(await by(cookie, path, asking));
  expect(upstream.calls.slice(before).map(({ target }) => target)).toEqual([]);
}

export async function expectGoesOn({ look, askBy }: Browser, cookie: string): Promise<void> {
  expect((await look(cookie)).json).toMatchObject({ authenticated: true });
  for (const id of ['getApiKey', 'createApiKey'] as const) expect((await askBy(cookie, id)).status).toBeLessThan(300);
}

/** With sessions, and a page of each gateway's own. */
export const everywhere = (
  name: string,
  body: (stage: Asked, page: Browser) => Promise<unknown>,
  options: Omit<Parameters<typeof onAllStages>[2] & object, 'env'> = {},
): void => onAllStages(name, (stage) => body(stage, browserOf(stage)), { env, ...options });
