import { expect } from 'vitest';
import { LISTED } from '../../http/cors.ts';
import { METHODS, type Origin, ORIGINS, passes, SITES } from '../../sessions/origin-table.ts';
import { CLEARED, cookieIn, NAME, OWN_PAGE, SESSION, valueIn } from '../../sessions/helpers.ts';
import { call, type CallOptions, type TextAnswer } from '../../support/http.ts';
import { eventually, expectProblem, fail, from, type Scenario, type Stage, visit } from '../stage.ts';

const READ = { path: '/api/v2/apikey/1/' } as const;
const SUBSCRIPTION = { path: '/api/v2/subscription/' } as const;
const OVERVIEW = { path: '/bff/v1/account-overview' } as const;
const WRITE = { path: '/api/v2/apikey/', body: { label: 'x' } } as const;
const LOOK = { path: SESSION } as const;
/** One write of each method; what the upstream says of it is another matter. */
const PLAIN = {
  POST: { path: '/api/v2/apikey/', method: 'POST', body: { label: 'x' } },
  PATCH: { path: '/api/v2/referral/config/', method: 'PATCH', body: { mode: 'credits' } },
  DELETE: { path: '/api/v2/payment/method/', method: 'DELETE' },
} as const;
const SIGN_OUT = { path: SESSION, method: 'DELETE' } as const;
const EVERYWHERE = { path: `${SESSION}?everywhere=true`, method: 'DELETE' } as const;
const WARM = ['getReferralConfig', 'getSubscription', 'listNotifications', 'listPaymentMethods'];

let browsers = 0;

/** A browser at an address of its own, with a key that nobody has used before. */
async function browse(stage: Stage) {
  const { token } = await visit(stage, 'paid');
  const prefix = `browser-${++browsers}-`;
  const address = from(`192.0.2.${browsers}`);
  let requests = 0;
  const ask = (cookie: string | undefined, { headers, ...options }: CallOptions): Promise<TextAnswer> =>
    call(stage.gateway, {
      ...options,
      headers: {
        ...OWN_PAGE,
        ...address,
        'x-request-id': `${prefix}${++requests}`,
        ...(cookie !== undefined && { cookie }),
        ...headers,
      },
    });
  const signIn = async () => cookieIn(await ask(undefined, { path: SESSION, body: { token } }));
  const upstreamCalls = async () => {
    const { json } = await call(stage.sandbox.url, { path: '/_sandbox/calls' });
    return (json as { operation: string; headers: Record<string, string> }[])
      .filter(({ headers }) => headers['x-request-id']?.startsWith(prefix))
      .map(({ operation }) => operation)
      .toSorted();
  };
  const warmed = () => eventually(async () => expect(await upstreamCalls()).toEqual(WARM));
  return { token, ask, signIn, upstreamCalls, warmed };
}

function expectOver(answer: TextAnswer): void {
  expectProblem(answer, 401, 'unauthenticated');
  expect(answer.cookies).toEqual([]);
}

/** What browsers get and send (`contract.md` section 8). */
export const sessionScenarios: readonly Scenario[] = [
  {
    name: 'a key becomes a session, whose cookie is good for reads, writes and overviews',
    async run(stage) {
      const { ask, token } = await browse(stage);
      const answer = await ask(undefined, { path: SESSION, body: { token } });
      expect(answer.status).toBe(201);
      expect(answer.headers['set-cookie']).toMatch(
        /^__Host-Http-portico=[\w-]+; Max-Age=604800; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
      );
      expect(answer.text + JSON.stringify(answer.headers)).not.toContain(token);
      const cookie = cookieIn(answer);
      expect((await ask(cookie, LOOK)).text).toBe(answer.text);
      for (const options of [SUBSCRIPTION, OVERVIEW, { ...SUBSCRIPTION, method: 'HEAD' }, WRITE])
        expect((await ask(cookie, options)).status).toBeLessThan(300);
    },
  },
  {
    name: 'a social login becomes a session, and its token is told to nobody',
    async run(stage) {
      const { ask } = await browse(stage);
      const body = { provider: 'sandbox', code: 'sandbox-code-paid', redirect_uri: 'https://app.example/callback' };
      const answer = await ask(undefined, { path: `${SESSION}/login`, body });
      expect([answer.status, Object.keys(answer.json as object)]).toEqual([
        201,
        ['authenticated', 'expires_at', 'account'],
      ]);
      expect((await ask(cookieIn(answer), SUBSCRIPTION)).status).toBe(200);
    },
  },
  {
    name: 'after a sign-in the first overview finds all it needs, and no call is made twice',
    async run(stage) {
      const { ask, signIn, upstreamCalls, warmed } = await browse(stage);
      const cookie = await signIn();
      expect((await ask(cookie, OVERVIEW)).json).toMatchObject({ meta: { complete: true } });
      await warmed();
      await ask(cookie, OVERVIEW);
      expect(await upstreamCalls()).toEqual(WARM);
    },
  },
  {
    name: 'a sign-out ends the session and no other, and everywhere ends all of the key',
    async run(stage) {
      const { ask, signIn } = await browse(stage);
      const [one, other, third] = [await signIn(), await signIn(), await signIn()];
      const out = await ask(one, SIGN_OUT);
      expect([out.status, out.text, out.cookies, out.headers['clear-site-data']]).toEqual([
        204,
        '',
        [CLEARED],
        '"cache"',
      ]);
      for (const options of [LOOK, READ, SUBSCRIPTION, OVERVIEW, WRITE, EVERYWHERE])
        expectOver(await ask(one, options));
      const again = await ask(one, SIGN_OUT);
      expect([again.status, again.cookies]).toEqual([204, [CLEARED]]);
      expect((await ask(other, LOOK)).json).toMatchObject({ authenticated: true });
      expect((await ask(other, EVERYWHERE)).status).toBe(204);
      for (const cookie of [other, third])
        for (const options of [LOOK, SUBSCRIPTION, WRITE]) expectOver(await ask(cookie, options));
      const later = await signIn();
      for (const options of [LOOK, SUBSCRIPTION, WRITE]) expect((await ask(later, options)).status).toBeLessThan(300);
    },
  },
  {
    name: 'a request by cookie without a body needs no type',
    async run(stage) {
      const { ask, signIn } = await browse(stage);
      const cookie = await signIn();
      for (const options of [{ method: 'POST', path: '/api/v2/proxy/list/refresh/' }, SIGN_OUT])
        expect((await ask(cookie, options)).status).not.toBe(415);
    },
  },
  {
    name: 'a sign-in over an old session ends that',
    async run(stage) {
      const { ask, signIn, token } = await browse(stage);
      const old = await signIn();
      const cookie = cookieIn(await ask(old, { path: SESSION, body: { token } }));
      expectOver(await ask(old, LOOK));
      expect((await ask(cookie, LOOK)).status).toBe(200);
    },
  },
  {
    name: 'a 401 of the upstream ends the session',
    async run(stage) {
      const { ask, signIn, warmed } = await browse(stage);
      const cookie = await signIn();
      await warmed();
      await fail(stage, { operation: 'createApiKey', status: 401 });
      expectOver(await ask(cookie, WRITE));
      await eventually(async () => expectOver(await ask(cookie, LOOK)));
    },
  },
  {
    name: 'a cookie that was changed, or is there twice, is 401',
    async run(stage) {
      const { ask, signIn } = await browse(stage);
      const cookie = await signIn();
      const value = valueIn(cookie);
      const changed = `${NAME}=${value.slice(0, 40)}${value[40] === 'A' ? 'B' : 'A'}${value.slice(41)}`;
      for (const bad of [changed, `${NAME}=`, `${NAME}="${value}"`, `${cookie}; ${cookie}`, cookie.slice(0, -2)])
        for (const options of [LOOK, SUBSCRIPTION, WRITE]) expectOver(await ask(bad, options));
      for (const alike of [cookie.toLowerCase(), `x${cookie}`, cookie.replace('=', ' =')])
        expect((await ask(alike, LOOK)).json).toEqual({ authenticated: false });
      expect((await ask(`a=b; ${cookie};c=d`, LOOK)).json).toMatchObject({ authenticated: true });
    },
  },
  {
    name: 'two of our cookies in two headers are 401',
    async run(stage) {
      const { ask, signIn } = await browse(stage);
      const cookie = await signIn();
      const both = (...cookies: string[]) => ask(undefined, { ...LOOK, headers: { cookie: cookies } });
      expectOver(await both(cookie, cookie));
    },
  },
  {
    name: 'a header wins over a cookie, also where it is malformed',
    async run(stage) {
      const { ask, signIn, token } = await browse(stage);
      const cookie = await signIn();
      expect((await ask(cookie, { ...LOOK, token })).json).toEqual({ authenticated: false });
      const answer = await ask(cookie, { ...SUBSCRIPTION, headers: { authorization: 'x' } });
      expectProblem(answer, 401, 'unauthenticated');
      expect(answer.cookies).toEqual([]);
    },
  },
  {
    name: 'each combination of method, origin and fetch metadata passes, or is 403, as the contract says',
    async run(stage) {
      const { signIn } = await browse(stage);
      const cookie = await signIn();
      const named: Readonly<Record<Origin, string | undefined>> = {
        absent: undefined,
        own: new URL(stage.gateway).origin,
        listed: LISTED,
        'other listed': LISTED,
        foreign: 'https://evil.example',
        null: 'null',
      };
      for (const method of METHODS)
        for (const site of SITES)
          for (const name of ORIGINS) {
            const origin = named[name];
            const headers = { cookie, ...(site && { 'sec-fetch-site': site }), ...(origin && { origin }) };
            const options = method === 'GET' || method === 'HEAD' ? { ...LOOK, method } : { ...PLAIN[method], headers };
            const answer = await call(stage.gateway, { ...options, headers });
            const isRefused = answer.status === 403;
            expect([method, site, name, isRefused]).toEqual([method, site, name, !passes(method, site, name)]);
            if (isRefused && method !== 'HEAD') expectProblem(answer, 403, 'origin_rejected');
          }
    },
  },
];
