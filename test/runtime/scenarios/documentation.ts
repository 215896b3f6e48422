import { expect } from 'vitest';
import { ERRORS, titleOf } from '../../../src/core/errors.ts';
import { accountTable, accountTables, allOperations, allOverviews } from '../../support/account-api.ts';
import { openApiText } from '../../../src/routes/document.ts';
import { call } from '../../support/http.ts';
import { expectProblem, type Scenario, visit } from '../stage.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export const documentationScenarios: readonly Scenario[] = [
  {
    name: '/openapi.json describes all operations and the composed ones',
    async run({ gateway }) {
      const answer = await call(gateway, { path: '/openapi.json' });
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
      expect(answer.text).toBe(await openApiText(accountTables));
      const { openapi, paths } = answer.json as Document;
      expect(openapi).toMatch(/^3\.1\./);
      for (const { method, path } of allOperations) expect(paths[path]).toHaveProperty(method.toLowerCase());
      for (const { path } of [...allOverviews, { path: '/bff/v1/batch' }, { path: '/bff/v1/outcome' }])
        expect(paths).toHaveProperty([path]);
    },
  },
  {
    name: '/docs and all that it loads come from the gateway',
    async run({ gateway }) {
      const { status, headers, text } = await call(gateway, { path: '/docs' });
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
      const sources = Array.from(text.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g), ([, source = '']) => source);
      expect(sources).toContain('/docs/swagger-ui-bundle.js');
      for (const path of sources) {
        expect(path).toMatch(/^\//);
        const loaded = await call(gateway, { path });
        expect([path, loaded.status]).toEqual([path, 200]);
        expect(loaded.headers['content-type']).toMatch(/^(text\/(javascript|css); charset=utf-8|application\/json)$/);
        expect(loaded.text.length).toBeGreaterThan(50);
      }
    },
  },
  {
    name: '/livez and /readyz say yes',
    async run({ gateway }) {
      expect(await call(gateway, { path: '/livez' })).toMatchObject({ status: 200, json: { status: 'live' } });
      expect(await call(gateway, { path: '/readyz' })).toMatchObject({ status: 200, json: { status: 'ready' } });
    },
  },
  {
    name: 'each code of a problem has its page, one of the upstream’s own a general one, and what is no code has none',
    async run({ gateway }) {
      const list = await call(gateway, { path: '/problems' });
      const { problems } = list.json as {
        readonly problems: readonly { readonly code: string; readonly type: string }[];
      };
      const kinds = [...Object.entries(ERRORS), ...accountTable.refusals];
      expect([list.status, problems.map(({ code }) => code)]).toEqual([200, kinds.map(([code]) => code)]);
      expect((await call(gateway, { path: '/problems/' })).text).toBe(list.text);
      for (const [code, { status, title = titleOf(code) }] of kinds) {
        const page = await call(gateway, { path: `/problems/${code}` });
        expect([page.status, page.json]).toMatchObject([200, { code, title, status }]);
      }
      for (const code of ['out_of_luck', 'constructor', 'status_419']) {
        const page = await call(gateway, { path: `/problems/${code}` });
        expect([page.status, page.json]).toMatchObject([
          200,
          { code, detail: expect.stringMatching(/upstream’s own/) },
        ]);
      }
      for (const word of ['Nothing', '__proto__', 'status_519', 'a.b', '4242'])
        expectProblem(await call(gateway, { path: `/problems/${word}` }), 404, 'not_found');
    },
  },
  {
    name: 'every answer has its id, its time and the security headers',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const id = visitor.nextId();
      const answers = [
        await visitor.call({ path: '/api/v2/subscription/' }),
        await call(stage.gateway, { path: '/nothing', headers: { 'x-request-id': id } }),
        await call(stage.gateway, { path: '/livez', headers: { 'x-request-id': id } }),
      ];
      for (const { headers } of answers) {
        expect(headers['x-request-id']).toBe(id);
        expect(headers['server-timing']).toMatch(/total;dur=\d/);
        expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff' });
        expect(headers).not.toHaveProperty('x-frame-options');
      }
      const bad = await call(stage.gateway, { path: '/livez', headers: { 'x-request-id': 'not one!' } });
      expect(bad.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
    },
  },
];
