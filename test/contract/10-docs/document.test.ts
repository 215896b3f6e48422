import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Operation } from '../../../src/upstream/operation.ts';
import { accountTable, allOperations, allOverviews } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { type Asking, type Gateway, openGateway, startGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { isSocial } from '../../support/table.ts';
import { calls, type Document, document, flawsIn, itemOf } from './openapi.ts';

const isOpen = { token: null } as const;

everywhere(says('`/openapi.json` (OpenAPI 3.1, valid'), async ({ call }) => {
  const got = await call('/openapi.json', isOpen);
  const head = ['content-type', 'cache-control'].map((name) => got.headers.get(name));
  expect([got.status, ...head]).toEqual([200, 'application/json', 'no-cache']);
  const found = got.json as Document;
  expect(found.openapi).toMatch(/^3\.1\./);
  expect(await flawsIn(got.text)).toBeUndefined();
  for (const { method, path } of allOperations) expect(found.paths[path]).toHaveProperty(method.toLowerCase());
  for (const path of [...allOverviews.map((one) => one.path), '/bff/v1/batch', '/bff/v1/outcome', '/bff/v1/session'])
    expect(found.paths).toHaveProperty([path]);
  const { status, headers } = await call('/openapi.json', { ...isOpen, method: 'POST' });
  expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

/** That all answers may have: the description of the document, and HTTP, say so once. */
const COMMON =
  /^(content-(type|length)|cross-origin-.*|ratelimit.*|server-timing|vary|x-(content-type-options|request-id))$/;

/** The headers of good answers, asked for in two ways that make these differ. */
async function seenOf({ call, pass }: Gateway, path: string, asking: Asking): Promise<Set<string>> {
  const seen = new Set<string>();
  for (const headers of [{}, { 'if-none-match': '*', prefer: 'wait=1, handling=strict' }]) {
    const asked = call(path, { ...asking, headers: { 'sec-fetch-site': 'same-origin', ...headers } });
    await pass(1);
    for (const name of (await asked).headers.keys()) if (!COMMON.test(name)) seen.add(name);
  }
  return seen;
}

const SESSION = { at: '/bff/v1/session', path: '/bff/v1/session', token: null };

test.each<Asking & { readonly at: string; readonly path: string }>([
  ...allOperations.map(({ id, path: at }) => ({ at, ...exampleRequest(id), key: id })),
  ...allOverviews.map(({ path }) => ({ at: path, path })),
  { at: '/bff/v1/batch', path: '/bff/v1/batch', body: { requests: [{ id: 'a', path: '/api/v2/subscription/' }] } },
  { ...SESSION, body: { token: secret() } },
  SESSION,
  { ...SESSION, method: 'DELETE' },
])(
  `${says('types that openapi-typescript makes of it say what')}: headers of $method $at`,
  async ({ at, path, ...asking }) => {
    const { method = asking.body === undefined ? 'GET' : 'POST' } = asking;
    const good = Object.entries(itemOf(at, method).responses).filter(([status]) => /^[23]/.test(status));
    const told = good.flatMap(([, { headers = {} }]) => Object.keys(headers).map((one) => one.toLowerCase()));
    const gateway = openGateway({ SESSIONS: 'true', SECRETS: secret('of-the-document-and-no-others') });
    expect(new Set(told)).toEqual(await seenOf(gateway, path, asking));
  },
);

const namesOf = (path: string, method: string, place: string) =>
  (itemOf(path, method).parameters ?? []).filter((one) => one.in === place).map(({ name }) => name);

describe(says('(OpenAPI 3.1, valid, with examples; types'), () => {
  test('it has the operations of the upstream, and no others there', () => {
    const found = calls
      .filter(({ path }) => path.startsWith('/api/'))
      .map(({ item, name }) => `${item.operationId} ${name}`);
    expect(new Set(found)).toEqual(new Set(allOperations.map(({ id, method, path }) => `${id} ${method} ${path}`)));
    expect(new Set(calls.map(({ item }) => item.operationId)).size).toBe(calls.length);
    expect(new Set(calls.flatMap(({ item }) => item.tags))).toEqual(new Set(document.tags.map(({ name }) => name)));
    for (const { name, item } of calls) expect(item.summary, name).toBeTruthy();
    expect(namesOf('/bff/v1/batch', 'post', 'header')).toEqual(['Cache-Control']);
  });

  test.each(allOperations.map((row) => [row.id, row] as const))('%s is told of as it is', (_, row: Operation) => {
    const item = itemOf(row.path, row.method);
    expect(item).toMatchObject({ tags: [row.tag.name], summary: row.summary });
    expect(item.security).toEqual(row.credential === 'none' ? [] : undefined);
    expect(namesOf(row.path, row.method, 'query')).toEqual(Object.keys(row.query ?? {}));
    expect(namesOf(row.path, row.method, 'path')).toEqual(Object.keys(row.params));
    expect(Object.keys(item.requestBody?.content ?? {})).toEqual(row.body ? ['application/json'] : []);
    expect(Boolean(item.requestBody?.required)).toBe(row.body !== undefined && !row.body.optional);
    const good = row.answer === null ? '204' : row.method === 'GET' ? '200' : '2XX';
    const ofPost = row.method === 'POST' ? ['409', '422'] : [];
    const own = [...(row.cache || row.polled ? ['304'] : []), ...(isSocial(row.id as never) ? [] : ['401'])];
    expect(new Set(Object.keys(item.responses))).toEqual(new Set([good, ...own, '429', ...ofPost, 'default']));
    expect(Object.keys(item.responses[good]?.content ?? {})).toEqual(row.answer === null ? [] : ['application/json']);
  });

  test.each(allOverviews.map((one) => [one.path, one] as const))(
    '%s has its sections to choose',
    (path, { id, sections }) => {
      const names = Object.keys(sections);
      const pages = names.filter((name) => sections[name]?.read.page);
      expect(itemOf(path).operationId).toBe(id);
      expect(namesOf(path, 'get', 'query')).toEqual([
        'sections',
        ...names.map((name) => `fields[${name}]`),
        ...pages.map((name) => `page_size[${name}]`),
      ]);
      expect(namesOf(path, 'get', 'header')).toContain('Prefer');
      expect(itemOf(path).parameters?.[0]).toMatchObject({ schema: { items: { enum: names } } });
    },
  );

  test('it says how ids are read in JavaScript, and which numbers they are', () => {
    const [, code = ''] = /`(JSON\.parse\(.*\))`/.exec(document.info.description) ?? [];
    const text = '{"id":5,"user_id":9007199254740993123,"ids":[-9007199254740993],"amount":25.0,"text":"12"}';
    const wanted = { id: 5, user_id: '9007199254740993123', ids: ['-9007199254740993'], amount: 25, text: '12' };
    expect(runInNewContext(code, { text })).toEqual(wanted);
    const fields = Object.values(document.components.schemas).flatMap(({ properties = {} }) =>
      Object.entries(properties as Record<string, { type?: unknown; format?: string }>),
    );
    const ids = fields.filter(([name, { type = 'string' }]) => /(^|_)id$/.test(name) && type !== 'string');
    expect(ids.length).toBeGreaterThan(5);
    for (const [, { format }] of ids) expect(format).toBe('int64');
  });

  test('it knows every code', () => {
    const codes = document.components.schemas['ProblemCode']?.['enum'] as readonly string[];
    const page = itemOf('/problems').responses['200']?.content?.['application/json']?.example as unknown as {
      readonly problems: readonly { readonly code: string }[];
    };
    const ours = page.problems.map(({ code }) => code);
    expect(codes).toEqual([...ours, ...accountTable.refusals.keys()]);
    for (const code of ['outcome_unknown', 'store_unavailable', 'loop_detected']) expect(ours).toContain(code);
  });
});

const { call } = openGateway();

everywhere(says('say what this page says), `/docs`'), async (stage) => {
  for (const path of ['/docs', '/docs/']) {
    const { status, headers, text } = await stage.call(path, isOpen);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(text).not.toMatch(/https?:|<script>|\son\w+=|style=/); // nothing runs or comes from elsewhere
    const named = Array.from(text.matchAll(/(?:src|href)="(\/[^"]*)"/g), ([, target = '']) => target);
    expect(named).toEqual(['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/docs/start.js', '/openapi.json']);
    const { headers: ofScript } = await stage.call('/docs/start.js', isOpen);
    expect(ofScript.get('content-type')).toBe('text/javascript; charset=utf-8');
  }
});

everywhere(says('`/livez`, `/readyz` on both listeners'), async (stage) => {
  for (const [path, status] of [
    ['/livez', 'live'],
    ['/readyz', 'ready'],
  ] as const)
    expect(await stage.call(path, isOpen)).toMatchObject({ status: 200, text: JSON.stringify({ status }) });
});

test(`${says('/readyz on both listeners')}: the admin's, which knows no other page of these`, async () => {
  const gateway = await startGateway('http://127.0.0.1:9', { admin: true });
  onTestFinished(() => gateway.close());
  const statuses = [];
  for (const path of ['/livez', '/readyz', '/docs', '/openapi.json'])
    statuses.push((await fetch(gateway.adminUrl + path)).status);
  expect(statuses).toEqual([200, 200, 404, 404]);
});

describe(says('this page says), `/docs`, `/livez`'), () => {
  test('the page runs scripts of its own alone, and works without them', async () => {
    const { headers, text } = await call('/docs', isOpen);
    const policy = headers.get('content-security-policy')?.split('; ');
    const own = ["script-src 'self'", "style-src 'self'", "connect-src 'self'", 'img-src data:'];
    const none = ['default-src', 'base-uri', 'form-action', 'frame-ancestors'].map((one) => `${one} 'none'`);
    expect(policy?.toSorted()).toEqual([...own, ...none].toSorted());
    expect(text).toMatch(/<noscript>[^]*href="\/openapi\.json"[^]*<\/noscript>/);
    const script = (await call('/docs/start.js', isOpen)).text;
    expect(script).toMatch(/url: '\/openapi\.json'[^]*validatorUrl: null|validatorUrl: null[^]*url: '\/openapi\.json'/);
    expect(script).toContain('tryItOutEnabled: false');
    expect(script).not.toMatch(/https?:|preauthorize/);
    expect(await call('/docs', { ...isOpen, method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });

  test.each(['swagger-ui-bundle.js', 'swagger-ui.css'])('%s is the one of the package', async (name) => {
    const file = await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)), 'utf8');
    expect((await call(`/docs/${name}`, isOpen)).text === file).toBe(true);
  });

  test('where its files are missing, that is a problem', async () => {
    const bare = openGateway({}, { docsAssets: { read: () => Promise.resolve(null) } });
    expect(await bare.call('/docs/swagger-ui.css', isOpen)).toMatchObject({ status: 404, code: 'not_found' });
    expect((await bare.call('/openapi.json', isOpen)).status).toBe(200);
  });

  test('beside a sandbox it names the accounts, and sends calls with the key of the first', async () => {
    const trialAccounts = ['first', 'second'].map((name) => ({ key: `${name}-key`, description: `the ${name} one` }));
    const playing = openGateway({}, { trialAccounts });
    const { text } = await playing.call('/docs', isOpen);
    for (const { key, description } of trialAccounts)
      expect(text).toMatch(new RegExp(`${key}[^]*${description}|${description}[^]*${key}`));
    const script = (await playing.call('/docs/start.js', isOpen)).text;
    expect(script).toContain("preauthorizeApiKey('Token', 'Token first-key')");
    expect(script).toContain('tryItOutEnabled: true');
  });
});
