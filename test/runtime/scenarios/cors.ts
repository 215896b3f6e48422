import { expect } from 'vitest';
import { expectHidden, expectShown, LISTED, saidOf } from '../../http/cors.ts';
import { call, type CallOptions } from '../../support/http.ts';
import { type Scenario, type Stage, visit } from '../stage.ts';

const PATH = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/account-overview';
const OTHER = 'https://other.example';

interface Case {
  readonly what: string;
  readonly options: CallOptions;
  readonly status: number;
}

const CASES: readonly Case[] = [
  { what: 'a read', options: { path: PATH }, status: 200 },
  { what: 'a 304', options: { path: PATH, headers: { 'if-none-match': '*' } }, status: 304 },
  { what: 'a HEAD', options: { path: PATH, method: 'HEAD' }, status: 200 },
  { what: 'a write', options: { path: '/api/v2/apikey/', body: { label: 'x' } }, status: 201 },
  { what: 'an overview', options: { path: OVERVIEW }, status: 200 },
  { what: 'a stream', options: { path: OVERVIEW, headers: { accept: 'application/x-ndjson' } }, status: 200 },
  { what: 'a 401', options: { path: PATH, headers: { authorization: 'x' } }, status: 401 },
  { what: 'a 404', options: { path: '/nothing' }, status: 404 },
  { what: 'a path that is none', options: { path: '/api/v2/apikey%2f1/' }, status: 404 },
  { what: 'a 405', options: { path: PATH, method: 'DELETE' }, status: 405 },
  { what: 'a 413', options: { path: '/api/v2/apikey/', body: 'x'.repeat(70_000) }, status: 413 },
  { what: 'an OPTIONS that is no preflight', options: { path: PATH, method: 'OPTIONS' }, status: 405 },
];

const preflight = ({ gateway }: Stage, path: string, origin: string) =>
  call(gateway, { method: 'OPTIONS', path, headers: { origin, 'access-control-request-method': 'GET' } });

/** What browsers on other origins are told (`contract.md` section 9). */
export const corsScenarios: readonly Scenario[] = [
  ...CASES.map(({ what, options, status }): Scenario => ({
    name: `${what} is shown to an origin that is allowed, and to no other`,
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const from = (origin: string) => visitor.call({ ...options, headers: { ...options.headers, origin } });
      const shown = await from(LISTED);
      expect(shown.status).toBe(status);
      expectShown(shown, LISTED, true);
      expectHidden(await from(OTHER));
    },
  })),
  {
    name: 'a preflight without a credential is told what the gateway takes, from an origin that is allowed',
    async run(stage) {
      for (const path of [PATH, '/nothing']) {
        const answer = await preflight(stage, path, LISTED);
        expect(answer.status).toBe(204);
        expect(saidOf(answer)).toMatchObject({
          'access-control-allow-origin': LISTED,
          'access-control-max-age': '7200',
          'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
          'access-control-allow-headers':
            'Authorization, Cache-Control, Content-Type, Idempotency-Key, If-None-Match, Prefer, X-Request-Id, ' +
            'traceparent, tracestate',
        });
      }
      for (const [path, origin] of [
        [PATH, OTHER],
        ['/nothing', OTHER],
      ] as const) {
        const other = await preflight(stage, path, origin);
        expect(other.status).toBe(204);
        expectHidden(other);
      }
    },
  },
];
