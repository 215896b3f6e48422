import { runInNewContext } from 'node:vm';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../src/app.ts';
import { ERRORS } from '../../src/core/errors.ts';
import { nodeDeps } from '../../src/entry/node/deps.ts';
import { accountTables, allOperations, allOverviews } from '../support/account-api.ts';
import { EXPOSED } from '../../src/middleware/cors.ts';
import { ID_FORMS, type Operation } from '../../src/upstream/operation.ts';
import { configOf, keepingLogger } from '../support/gateway.ts';
import { rowOf, socialIds } from '../support/table.ts';
import { document, documented, itemOf, parametersIn, parsed } from './openapi-document.ts';

test('is a valid OpenAPI 3.1 document, and the same each time', async () => {
  expect(document.openapi).toMatch(/^3\.1\./);
  const result = await new Validator().validate((await parsed()) as unknown as Record<string, unknown>);
  expect(result.errors).toBeUndefined();
  expect(result.valid).toBe(true);
  expect(await parsed()).toEqual(document);
});

test('has the operations of the table, all of them and no others at the paths of the upstream', () => {
  const wanted = allOperations.map(({ id, method, path }) => `${id} ${method} ${path}`);
  const found = documented
    .filter(({ path }) => path.startsWith('/api/'))
    .map(({ item, name }) => `${item.operationId} ${name}`);
  expect(found.toSorted()).toEqual(wanted.toSorted());
});

describe.each(allOperations.map((row) => [row.id, row] as const))('%s', (_, row: Operation) => {
  const item = itemOf(row.path, row.method);

  test('is told of as its row does', () => {
    expect(item).toMatchObject({ tags: [row.tag.name], summary: row.summary });
    expect(document.tags.map(({ name }) => name)).toContain(row.tag.name);
    if (row.description) expect(item.description).toContain(row.description);
  });

  test('has the parameters of its row', () => {
    const queries = parametersIn(item, 'query');
    expect(queries.map(({ name }) => name)).toEqual(Object.keys(row.query ?? {}));
    expect(queries.every(({ required, description }) => !required && Boolean(description))).toBe(true);
    const [id, ...others] = parametersIn(item, 'path');
    expect(others).toEqual([]);
    if (!row.idForm) return expect(id).toBeUndefined();
    expect(id).toMatchObject({ name: 'id', required: true, schema: { pattern: `^${ID_FORMS[row.idForm]}$` } });
    expect(id?.schema['examples']).toEqual([expect.stringMatching(`^${ID_FORMS[row.idForm]}$`)]);
  });

  test('has the body of its row', () => {
    expect(item.requestBody !== undefined).toBe(row.body !== undefined);
    if (row.body) expect(Boolean(item.requestBody?.required)).toBe(!row.body.optional);
    if (row.body) expect(Object.keys(item.requestBody?.content ?? {})).toEqual(['application/json']);
  });

  test('has a good answer, 304 where it has an ETag, 401 where it takes a credential, those of limits and of keys, and problems', () => {
    const good = row.answer === null ? '204' : row.method === 'GET' ? '200' : '2XX';
    const isValidated = row.cache !== undefined || row.polled === true;
    const own = [...(isValidated ? ['304'] : []), ...(row.credential === 'none' ? [] : ['401'])];
    const codes = [good, ...own, '429', ...(row.method === 'POST' ? ['409', '422'] : []), 'default'];
    expect(new Set(Object.keys(item.responses))).toEqual(new Set(codes));
    const answer = item.responses[good];
    expect(Object.keys(answer?.content ?? {})).toEqual(row.answer === null ? [] : ['application/json']);
    const written = [
      ...(row.polled ? ['ETag'] : []),
      'Cache-Control',
      ...(row.method === 'POST' ? ['Idempotency-Replayed'] : []),
    ];
    const headers = row.cache ? ['ETag', 'Age', 'Cache-Control', 'Cache-Status'] : written;
    expect(Object.keys(answer?.headers ?? {})).toEqual(headers);
    if (isValidated) expect(item.responses['304']).toMatchObject({ headers: answer?.headers });
  });

  test('takes no credential exactly where its row says so', () => {
    expect(item.security).toEqual(row.credential === 'none' ? [] : undefined);
  });
});

test('every operation has an id of its own, a summary and a tag of the list', () => {
  const ids = documented.map(({ item }) => item.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const tags = document.tags.map(({ name }) => name);
  expect(new Set(documented.flatMap(({ item }) => item.tags))).toEqual(new Set(tags));
  for (const { item, name } of documented) expect(item.summary, name).toBeTruthy();
});

test('outside social and what tells of the gateway itself, everything takes a credential', () => {
  const open = documented.filter(({ item }) => item.security?.length === 0).map(({ path }) => path);
  const own = ['/', '/problems', '/problems/{code}', '/openapi.json', '/docs', '/livez', '/readyz'];
  const signIn = ['/bff/v1/session', '/bff/v1/session/register', '/bff/v1/session/login'];
  expect(open).toEqual([...signIn, ...socialIds.map((id) => rowOf(id).path), ...own]);
});

/** Hono's pattern in the words of the document. */
const templateOf = (route: string) => route.replaceAll(/:(?:portico_)?(\w+)(\{.*?\})?(?=\/|$)/g, '{$1}');

const withoutSlash = (name: string) => name.replace(/(?<=[\w}])\/$/, '');

describe('the app', () => {
  let close: () => Promise<void>;
  let answered: readonly string[];

  beforeAll(() => {
    const built = nodeDeps({
      ...accountTables,
      config: configOf({ UPSTREAM_BASE_URL: 'http://127.0.0.1:9', SESSIONS: 'true', SECRETS: 's'.repeat(32) }),
      upstream: new URL('http://127.0.0.1:9'),
      logger: keepingLogger([]),
      readiness: { isReady: () => true },
    });
    close = built.close;
    answered = createApp(built.deps).routes.map(({ method, path }) => `${method} ${path}`);
  });

  afterAll(() => close());

  test('answers all of the document, and besides it only the parts of the page', () => {
    const besides = ['GET /docs/start.js', 'GET /docs/swagger-ui-bundle.js', 'GET /docs/swagger-ui.css'];
    const found = new Set(
      answered
        .filter((route) => !route.startsWith('ALL '))
        .map(templateOf)
        .map(withoutSlash),
    );
    const wanted = documented.map(({ name }) => withoutSlash(name));
    expect(found).toEqual(new Set([...wanted, ...besides]));
  });
});

describe.each(allOverviews.map((overview) => [overview.id, overview] as const))('%s', (id, overview) => {
  const item = itemOf(overview.path, 'get');
  const sections = Object.keys(overview.sections);

  test('has its sections to choose from, and the fields of each', () => {
    expect(item.operationId).toBe(id);
    const names = parametersIn(item, 'query').map(({ name }) => name);
    const pages = sections.filter((name) => overview.sections[name]?.read.paged);
    const chosen = ['sections', ...sections.map((name) => `fields[${name}]`)];
    expect(names).toEqual([...chosen, ...pages.map((name) => `page_size[${name}]`)]);
    const [first, ...fields] = parametersIn(item, 'query').slice(0, chosen.length);
    expect(first).toMatchObject({ style: 'form', explode: false, schema: { items: { enum: sections } } });
    for (const one of fields)
      expect(one.schema, one.name).toMatchObject({ items: { enum: expect.arrayContaining(['id']) } });
    expect(parametersIn(item, 'header').map(({ name }) => name)).toContain('Prefer');
  });

  test('is answered as JSON, whole or in part, and as lines', () => {
    const { 'application/json': json, 'application/x-ndjson': lines } = item.responses['200']?.content ?? {};
    expect(Object.keys(json?.examples ?? {})).toEqual(['complete', 'partial']);
    expect(Object.keys(lines?.examples ?? {})).toEqual(['section', 'failed', 'last']);
  });
});

test('knows every problem code', () => {
  const example = itemOf('/problems', 'get').responses['200']?.content?.['application/json']?.example;
  const { problems } = example as unknown as { readonly problems: readonly { readonly code: string }[] };
  expect(problems.map(({ code }) => code)).toEqual(Object.keys(ERRORS));
});

describe('ids', () => {
  const [, code = ''] = /`(JSON\.parse\(.*\))`/.exec(document.info.description) ?? [];

  test('survive in JavaScript when they are read as the document says', () => {
    const text = '{"id":5,"user_id":9007199254740993123,"ids":[-9007199254740993],"amount":25.0,"text":"12"}';
    expect(runInNewContext(code, { text })).toEqual({
      id: 5,
      user_id: '9007199254740993123',
      ids: ['-9007199254740993'],
      amount: 25,
      text: '12',
    });
  });

  test('are said to be long wherever they are numbers', () => {
    const fields = Object.values(document.components.schemas).flatMap(({ properties = {} }) =>
      Object.entries(properties as Record<string, { type?: unknown; format?: string; description?: string }>),
    );
    const found = fields.filter(([name, { type }]) => /(^|_)id$/.test(name) && type !== 'string');
    expect(found.length).toBeGreaterThan(10);
    for (const [, { format, description }] of found.filter(([, { type }]) => type !== undefined))
      expect({ format, description }).toEqual({ format: 'int64', description: expect.stringContaining('2^53') });
  });
});

test('says what pages of other origins may read', () => {
  for (const name of EXPOSED.split(', ')) expect(document.info.description).toContain(`\`${name}\``);
});
