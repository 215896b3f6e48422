import { expect } from 'vitest';
import { LISTED } from '../../http/cors.ts';
import { call, type CallOptions, type TextAnswer } from '../../support/http.ts';
import { goodAnswer } from '../../support/marked.ts';
import { json, perCall, type ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { secret } from '../../support/secrets.ts';
import { BUSY } from '../host-app.ts';
import { from } from '../stage.ts';

/** The same gateway twice before one upstream, each with a store of its own: alone, and below `/api` of a host. */
export interface HostStage {
  readonly alone: string;
  readonly host: string;
}

interface HostScenario {
  readonly name: string;
  run(stage: HostStage): Promise<void>;
}

export const HOST_VARIABLES = {
  RATE_LIMIT_PER_MINUTE: '6',
  TRUSTED_PROXIES: '127.0.0.1',
  ALLOWED_ORIGINS: LISTED,
  SESSIONS: 'true',
  SECRETS: secret('of-the-gateway-in-a-host'),
} as const;

const PAGE = '/api/v2/payment/transaction/';
const READ = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/account-overview';
const PURCHASE = { path: '/api/v2/subscription/checkout/purchase/', body: { plan_id: 1, payment_method_id: 2 } };
const SESSION = '/bff/v1/session';

export function scriptUpstream(upstream: ScriptedUpstream): void {
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, 1)),
  );
  const next = `${upstream.url}${PAGE}?page=2`;
  upstream.on(`GET ${PAGE}`, json(200, JSON.stringify({ count: 2, next, previous: null, results: [] })));
}

type Asked = CallOptions & { readonly isAnonymous?: true };

interface Case {
  readonly what: string;
  /** One after the other, by one account. */
  readonly asked: readonly Asked[];
  readonly statuses: readonly number[];
}

const ask = (what: string, status: number, asked: Asked): Case => ({ what, asked: [asked], statuses: [status] });

const items = ['/api/v2/payment/transaction/', '/api/v2/nothing/', '/api/v2/apikey/'];
const ownPage = { 'sec-fetch-site': 'same-origin' } as const;

const CASES: readonly Case[] = [
  { what: 'a miss and a hit', asked: [{ path: READ }, { path: READ }], statuses: [200, 200] },
  { what: 'pages, which link to others', asked: [{ path: PAGE }, { path: PAGE }], statuses: [200, 200] },
  { what: 'an overview', asked: [{ path: OVERVIEW }, { path: OVERVIEW }], statuses: [200, 200] },
  ask('lines', 200, { path: OVERVIEW, headers: { accept: 'application/x-ndjson' } }),
  ask('a batch', 200, {
    path: '/bff/v1/batch',
    body: { requests: items.map((path, at) => ({ id: `${at}`, path })) },
  }),
  {
    what: 'a purchase with a key, once more',
    asked: [1, 2].map(() => ({ ...PURCHASE, headers: { 'idempotency-key': 'k' } })),
    statuses: [200, 200],
  },
  ask('a page without a session', 200, { path: SESSION, isAnonymous: true, headers: ownPage }),
  ask('a sign-out', 204, { path: SESSION, method: 'DELETE', isAnonymous: true, headers: ownPage }),
  ask('a cookie of nobody', 401, {
    path: READ,
    isAnonymous: true,
    headers: { ...ownPage, cookie: '__Host-Http-portico=x' },
  }),
  ask('a 304', 304, { path: READ, headers: { 'if-none-match': '*' } }),
  ask('a HEAD', 200, { path: READ, method: 'HEAD' }),
  ask('a DELETE', 204, { path: '/api/v2/proxy/ipauthorization/1/', method: 'DELETE' }),
  ask('a 401', 401, { path: READ, isAnonymous: true }),
  ask('a 404', 404, { path: '/api/v2/nothing' }),
  ask('a 404 with the slash', 404, { path: '/api/v2/nothing/' }),
  ask('a 404 of a path of ours, encoded', 404, { path: '/api/v2/%73ubscription/' }),
  ask('a 404 below /bff/', 404, { path: '/bff/v1/nothing' }),
  ask('a read without the slash', 200, { path: READ.slice(0, -1) }),
  ask('an overview with the slash', 200, { path: `${OVERVIEW}/` }),
  ask('a 405', 405, { path: READ, method: 'DELETE' }),
  ask('a 405 without the slash', 405, { path: READ.slice(0, -1), method: 'PUT' }),
  ask('a 405 of an overview', 405, { path: OVERVIEW, body: {} }),
  ask('a 413', 413, { path: '/api/v2/apikey/', body: 'x'.repeat(70_000) }),
  {
    what: 'a 429',
    asked: Array.from({ length: 7 }, () => ({ path: READ })),
    statuses: [200, 200, 200, 200, 200, 200, 429],
  },
  ...[LISTED, 'https://other.example'].flatMap((origin) => [
    ask(`a preflight from ${origin}`, 204, {
      path: READ,
      method: 'OPTIONS',
      isAnonymous: true,
      headers: { origin, 'access-control-request-method': 'GET' },
    }),
    ask(`a read from ${origin}`, 200, { path: READ, headers: { origin } }),
    ask(`a problem to ${origin}`, 404, { path: '/api/v2/nothing/', headers: { origin } }),
  ]),
  ask('a code', 200, { path: '/problems/rate_limited' }),
  ask('all codes', 200, { path: '/problems' }),
  ask('life', 200, { path: '/livez' }),
];

/** What is of the moment, or of one connection. */
const PASSING = new Set(['date', 'connection', 'keep-alive', 'server-timing', 'x-host', 'transfer-encoding']);

const steady = (text: string) => text.replaceAll(/\b(t|ttl|age|dur)=\d+/gi, '$1=…');

/** On a busy machine the store of workerd may be too late for one of two. */
const STORED = /(?<=^portico; fwd=miss); stored$/;

const headersOf = ({ headers }: TextAnswer) =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => !PASSING.has(name))
      .map(([name, value]) => [name, name === 'age' ? '…' : steady(value).replace(STORED, '')]),
  );

/** What does not depend on where the gateway is; lines come in any order. */
const bodyOf = (text: string) =>
  text
    .split('\n')
    .toSorted()
    .join('\n')
    .replaceAll(/"(age|retry_after)":\d+/g, '"$1":…')
    .replaceAll(/\b\d+ seconds?\b/g, '… seconds');

/** The same text of a gateway below `/api`. */
const mounted = (text: string, { alone, host }: HostStage) =>
  text.replaceAll(alone, `${host}/api`).replaceAll(/"(type|instance)":"\//g, '"$1":"/api/');

let accounts = 0;

const isSized = ([name]: readonly [string, unknown]) => name !== 'content-length';

export const hostScenarios: readonly HostScenario[] = [
  ...CASES.map(({ what, asked, statuses }) => ({
    name: `${what} is what it is where the gateway stands alone`,
    async run(stage: HostStage) {
      const token = secret(`of-account-${++accounts}`);
      const address = from(`198.51.${accounts >> 8}.${accounts & 255}`);
      const answersOf = async (base: string) => {
        const answers: TextAnswer[] = [];
        for (const { isAnonymous, ...one } of asked) {
          const { pathname } = new URL(base);
          const path = (pathname === '/' ? '' : pathname) + one.path;
          const headers = { 'x-request-id': 'the-same', ...address, ...one.headers };
          const credential = isAnonymous ? {} : { token };
          answers.push(await call(base, { ...one, ...credential, path, headers }));
        }
        return answers;
      };
      const alone = await answersOf(stage.alone);
      const inHost = await answersOf(`${stage.host}/api`);
      expect(alone.map(({ status }) => status)).toEqual(statuses);
      for (const [at, answer] of inHost.entries()) {
        expect(answer.status).toBe(statuses[at]);
        expect(bodyOf(answer.text)).toBe(bodyOf(mounted(alone[at]!.text, stage)));
        const both = [answer, alone[at]!].map((one) => Object.entries(headersOf(one)).filter(isSized));
        expect(Object.fromEntries(both[0]!)).toEqual(Object.fromEntries(both[1]!));
        expect(answer.headers['x-host']).toBe('the host');
        if (answer.headers['content-length'] !== undefined && answer.text !== '')
          expect(Number(answer.headers['content-length'])).toBe(Buffer.byteLength(answer.text));
      }
    },
  })),
  {
    name: 'a session begins, is used and ends below the path of the gateway',
    async run({ host }) {
      const token = secret(`of-account-${++accounts}`);
      const at = (options: Asked) =>
        call(host, { ...options, path: `/api${options.path}`, headers: { ...ownPage, ...options.headers } });
      const begun = await at({ path: SESSION, body: { token } });
      expect([begun.status, begun.headers['x-host']]).toEqual([201, 'the host']);
      const cookie = begun.cookies[0]!.split(';', 1)[0]!;
      expect((await at({ path: READ, headers: { cookie } })).status).toBe(200);
      const ended = await at({ path: SESSION, method: 'DELETE', headers: { cookie } });
      expect([ended.status, ended.cookies[0]]).toEqual([204, expect.stringContaining('Max-Age=0')]);
      expect((await at({ path: READ, headers: { cookie } })).status).toBe(401);
    },
  },
  {
    name: 'the host answers for itself, with nothing of ours',
    async run({ host }) {
      const expected = [
        ['/own/file', 200, 'file'],
        ['/own/my%20doc.pdf', 200, 'my doc.pdf'],
        ['/own/a/', 404, 'not here'],
        ['/', 404, 'not here'],
        ['/nothing', 404, 'not here'],
        ['/api', 404, 'not here'],
        ['/api/nothing', 404, 'not here'],
        ['/livez', 404, 'not here'],
        ['/bff/v1/nothing', 404, 'not here'],
      ] as const;
      for (const [path, status, text] of expected) {
        const answer = await call(host, { path, headers: { origin: LISTED } });
        expect([path, answer.status, answer.text]).toEqual([path, status, text]);
        expect(answer.headers['x-host']).toBe('the host');
        expect(Object.keys(answer.headers)).not.toContain('x-request-id');
        expect(Object.keys(answer.headers)).not.toContain('x-content-type-options');
        expect(Object.keys(answer.headers)).not.toContain('vary');
        expect(Object.keys(answer.headers).join()).not.toContain('access-control');
      }
    },
  },
  {
    name: 'the host refuses an account before the gateway sees it',
    async run({ host }) {
      const { status, text, headers } = await call(host, { path: `/api${READ}`, token: BUSY });
      expect([status, text, headers['x-host']]).toEqual([503, 'busy', 'the host']);
      expect(headers).not.toHaveProperty('x-request-id');
    },
  },
];
