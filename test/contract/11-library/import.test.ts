import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { flawsIn } from '../10-docs/openapi.ts';
import { answered, api, gatewayOf, json, list, object, printed, ref, text } from './importing.ts';

/** Pets, as 3.0 says it. */
const PETS = {
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1' },
  servers: [
    { url: 'https://{region}.pets.example/v2', variables: { region: { default: 'eu' } } },
    { url: 'https://other' },
  ],
  security: [{ key: [] }],
  tags: [{ name: 'All pets', description: 'Cats, too.' }],
  paths: {
    '/v1/pets': {
      get: {
        operationId: 'list-pets',
        tags: ['All pets'],
        parameters: [
          { $ref: '#/components/parameters/Limit' },
          { name: 'kind', in: 'query', required: true, schema: list({ enum: ['cat', 'dog'], type: 'string' }) },
          { name: 'ids', in: 'query', explode: false, schema: list({ type: 'integer' }) },
          { name: 'fed', in: 'query', schema: { type: 'boolean' } },
          { name: 'where', in: 'query', style: 'deepObject', schema: object({}) },
          { name: 'X-Zoo', in: 'header', required: true, schema: text },
          { name: 'Accept', in: 'header', schema: text },
        ],
        ...answered(object({ data: list(ref('Pet')), links: object({ next: { ...text, nullable: true } }) })),
      },
      post: {
        tags: ['All pets', 'Nobody'],
        requestBody: { required: true, ...json(ref('Pet')) },
        ...answered({ allOf: [ref('Pet'), object({ age: { type: 'integer' } }, { required: ['age'] })] }),
      },
    },
    '/v1/pets/{pet-id}': {
      parameters: [{ name: 'pet-id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } }],
      get: { operationId: 'getPet', tags: ['All pets'], ...answered(ref('Pet')) },
      delete: { operationId: 'getPet', tags: ['All pets'], responses: { 204: { description: '' } } },
    },
    '/v1/pets/{name}/': { put: { operationId: 'feed', responses: { 202: { description: '' } } } },
    '/v1/sign-in': {
      post: {
        operationId: 'signIn',
        tags: ['All pets'],
        security: [],
        requestBody: json(object({ user: text, pass: { ...text, format: 'password' } })),
        ...answered(object({ apiKey: text, next_page_token: text })),
      },
    },
  },
  components: {
    securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } },
    parameters: { Limit: { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1 } } },
    schemas: {
      Pet: object(
        {
          id: { type: 'integer', readOnly: true },
          name: { ...text, description: 'what it is called', example: 'Tom' },
          born: { type: 'string', format: 'date-time', nullable: true },
          kind: { enum: ['cat', 'dog'] },
          owner: { allOf: [ref('Owner')], nullable: true },
          marks: { type: 'object', additionalProperties: { type: 'integer' } },
          anything: {},
          weight: { oneOf: [{ type: 'number' }, text] },
        },
        { required: ['id', 'name', 'owner'] },
      ),
      Owner: object({ pets: list(ref('Pet')), pet: ref('Pet'), name: text }, { required: ['pet', 'name'] }),
    },
  },
};

const ID = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';

describe(says('`portico import openapi.json` writes a table from an OpenAPI 3 document'), () => {
  test.each(['json', 'yaml'])('rows that serve, from %s of 3.0', async (kind) => {
    const code = await printed(kind === 'json' ? PETS : stringify(PETS), `openapi.${kind}`);
    const { rows, call, next, upstream } = await gatewayOf(code);
    expect(Object.values(rows)).toMatchObject([
      { id: 'listPets', at: 'GET /v1/pets', group: 'allPets', tag: { name: 'All pets', description: 'Cats, too.' } },
      { id: 'postV1Pets', at: 'POST /v1/pets', invalidates: ['allPets'] },
      { id: 'getPet', at: 'GET /v1/pets/{pet_id}', group: 'allPets' },
      { id: 'getPet2', at: 'DELETE /v1/pets/{pet_id}', answer: null, invalidates: ['allPets'] },
      { id: 'feed', at: 'PUT /v1/pets/{pet_id}/', answer: null },
      { id: 'signIn', credential: 'none', secrets: ['apiKey', 'pass'], body: { optional: true } },
    ]);
    expect(rows['listPets']?.page).toMatchObject({ items: '/data', next: '/links/next', size: 'limit' });
    expect(Object.values(rows).filter((row) => row.cache ?? row.polled)).toEqual([]);
    expect([rows['signIn']?.invalidates, rows['postV1Pets']?.secrets]).toEqual([undefined, undefined]);

    next('listPets', '{"data":[{"name":"Tom","more":2.50}],"links":{"next":"/v1/pets?page=2"}}');
    const all = await call('/v1/pets?limit=5&kind=cat&kind=dog&ids=1,2&fed=true&where[a]=b');
    expect(all.text).toBe('{"data":[{"name":"Tom","more":2.50}],"links":{"next":"http://localhost/v1/pets?page=2"}}');
    const bad = await call('/v1/pets?limit=0&kind=cow&ids=a&fed=maybe');
    expect(bad.json.errors).toMatchObject(['limit', 'kind', 'ids', 'fed'].map((field) => ({ field })));
    expect((await call('/v1/pets', { body: { name: 5, owner: null, kind: 'cow' } })).json.errors).toMatchObject([
      { field: 'name' },
      { field: 'kind' },
    ]);
    const whole = {
      name: 'Tom',
      owner: { name: 'Ann', pets: [{ name: 'Tim', owner: null }] },
      born: null,
      weight: '3',
    };
    next('postV1Pets', { ...whole, age: 3 });
    expect((await call('/v1/pets', { body: whole })).status).toBe(200);
    const { shape } = rows['postV1Pets']!.answer as unknown as { readonly shape: object };
    expect(Object.keys(shape)).toEqual([...Object.keys(PETS.components.schemas.Pet.properties), 'age']);
    next('getPet', whole);
    expect((await call(`/v1/pets/${ID}`)).status).toBe(200);
    expect((await call('/v1/pets/7')).code).toBe('unknown_endpoint');
    expect(upstream.calls.map(({ target }) => target)).toContain(`/v1/pets/${ID}`);
  });

  test('what it writes says where the upstream is, which keys it takes, and what no row can say', async () => {
    const code = await printed(PETS);
    for (const words of [
      '// Paths are below UPSTREAM_BASE_URL: here https://eu.pets.example/v2.',
      '// Other servers: https://other',
      '// Key key: apiKey header X-Key.',
      '// the parameter where is passed on as it is',
      '// without its header X-Zoo, which it requires\n  listPets: {',
      '// its parameters are those of the first row at its path, not of /v1/pets/{name}/\n  feed: {',
      '// pet: required, and it has itself in it',
      '// look: guessed by name or format',
      '{ explode: true, description: "kind" }), // required',
    ])
      expect(code).toContain(words);
    expect(code).not.toContain('Accept');
  });

  test('the document of such a gateway is valid, with schemas that have themselves in them', async () => {
    const { call } = await gatewayOf(await printed(PETS));
    const { json: document, text: whole } = await call('/openapi.json', { token: null });
    expect(await flawsIn(whole)).toBeUndefined();
    expect(whole).not.toContain('"$ref":"#"');
    expect(document.paths['/v1/pets/{pet_id}'].get.responses[200].content['application/json'].example).toEqual({
      id: 1,
      name: 'Tom',
      born: expect.any(String),
      kind: 'cat',
      owner: { pets: [], name: 'text' },
      marks: {},
      anything: null,
      weight: 1.5,
    });
  });

  test('3.1: several types, null, const, and answers without a schema or a name', async () => {
    const all = {
      mixed: { type: ['string', 'integer', 'null'] },
      none: { type: 'null' },
      sure: { const: 5 },
      either: { anyOf: [object({ a: text }), { type: 'null' }] },
      pair: { type: 'array', prefixItems: [text] },
      gone: ref('Gone'),
      elsewhere: { $ref: 'other.json#/Pet' },
      sum: ref('Sum'),
    };
    const code = await printed(
      api(
        {
          '/v1/all': { get: { operationId: 'all', ...answered(object(all, { required: Object.keys(all) })) } },
          '/v1/any': {
            get: { operationId: 'any', responses: { '2XX': { content: { 'application/problem+json': {} } } } },
          },
          '/v1/gone': { get: { operationId: 'gone', ...answered(ref('Gone')) } },
          '/v1/perhaps': {
            get: { operationId: 'perhaps', ...answered({ $ref: '#/paths/~1v1~1map/x-it', nullable: true }) },
          },
          '/v1/plain': { get: { operationId: 'plain', ...answered(list(text)) } },
          '/v1/list': { get: { operationId: 'list', ...answered(list(text), { headers: { Link: {} } }) } },
          '/v1/map': {
            'x-it': object({ a: text }),
            get: { operationId: 'map', ...answered({ additionalProperties: text }) },
          },
          '/v1/pages': {
            get: {
              operationId: 'pages',
              ...answered(object({ results: list({}), next: { type: ['string', 'null'] } })),
            },
          },
          '/v1/linked': {
            get: {
              operationId: 'linked',
              ...answered(object({ berths: list({}), next: { type: 'string', format: 'uri' }, prev: text })),
            },
          },
          '/v1/token': { get: { operationId: 'token', ...answered(object({ items: list({}), next: text })) } },
          '/v1/google': {
            get: { operationId: 'google', ...answered(object({ items: list({}), nextPageToken: text })) },
          },
        },
        {
          components: {
            schemas: { Sum: object({ left: { oneOf: [ref('Sum'), { type: 'number' }] } }, { required: ['left'] }) },
          },
        },
      ),
    );
    const { rows, call, next, lines, idle } = await gatewayOf(code);
    const paged = ['list', 'pages', 'google', 'linked', 'token', 'plain', 'all'].map((name) => rows[name]?.page);
    expect(paged).toEqual([
      { items: '' },
      { items: '/results', next: '/next' },
      { items: '/items' },
      { items: '/berths', next: '/next', links: ['/prev'] },
      undefined,
      undefined,
      undefined,
    ]);
    for (const word of [
      '`next` may be a link',
      'pair: `prefixItems` is',
      'gone: #/components/schemas/Gone is not',
      'elsewhere: other.json#/Pet is',
    ])
      expect(code).toContain(`// ${word}`);
    next('all', {
      mixed: null,
      none: null,
      sure: 5,
      either: null,
      pair: ['a', 1],
      gone: 1,
      elsewhere: {},
      sum: { left: { left: 1 } },
    });
    expect(rows['any']?.answer).not.toBeNull();
    next('any', '[1.0]');
    next('list', '["a"]');
    next('map', '{"__proto__":"a"}');
    expect(code).toMatch(/either: z\.nullable\(z\.looseObject/);
    expect(code).not.toContain('x-it is not');
    next('gone', '5');
    next('perhaps', 'null');
    for (const id of ['all', 'any', 'list', 'map', 'gone', 'perhaps'])
      expect((await call(`/v1/${id}`)).status, id).toBe(200);
    await idle();
    expect(lines.filter(({ msg }) => msg.includes('does not fit'))).toEqual([]);
  });

  test('what is no row is a comment in its place', async () => {
    const file = { content: { 'multipart/form-data': {} } };
    const ok = answered(object({}));
    const code = await printed(
      api(
        {
          '/v1/a': { post: { requestBody: file, ...ok }, head: ok, get: { requestBody: json({}), ...ok } },
          '/v1/b': { get: { responses: { 200: { content: { 'text/csv': {} } } } } },
          '/v1/c': {
            get: { responses: { 302: {} } },
            put: { responses: { 404: {} } },
            post: { ...ok, callbacks: { done: {} } },
          },
          '/v1/d/{id}.json': { get: ok },
          '/v1/e/': { get: { ...ok, deprecated: true, security: [], servers: [{ url: 'https://e.example' }] } },
          '/v1/e': { get: { ...ok, operationId: 'again' } },
          '/v1/h': { get: { ...ok, operationId: 'getReadiness' } },
          '/readyz': { get: { ...ok, operationId: 'getReadiness' } },
          '/v1/f/{a}/{b}': {
            parameters: [
              { name: 'a', in: 'path', schema: { pattern: '^(x|y)+$' } },
              { name: 'b', in: 'path', schema: { enum: ['v1.0', 'v2'] } },
              { name: 's', in: 'cookie' },
            ],
            get: ok,
          },
          '/v1/g': {
            get: answered(ref('Health')),
            post: { requestBody: { content: { 'application/merge-patch+json': {} } }, ...ok },
          },
        },
        { webhooks: { born: {} }, components: { schemas: { Health: object({}) } } },
      ),
    );
    for (const words of [
      'POST /v1/a is not here: its body is multipart/form-data',
      'HEAD /v1/a is not here: ',
      'GET /v1/a is not here: it is a GET with a body',
      'GET /v1/b is not here: its answer is text/csv',
      'GET /v1/c is not here: its answer is 302',
      'its good answer is not said',
      'without its callbacks done',
      'GET /v1/d/{id}.json is not here: the row',
      'deprecated\n',
      'it needs no key, but',
      'it is on a server of its own: https://e.example',
      'GET /v1/e is not here: another call is there',
      'GET /readyz is not here: another call is there',
      'a is any text that a path may have, not checked by ^(x|y)+$',
      'b is any text that a path may have, not checked by v1.0, v2',
      'without its cookie s\n',
      'its body is application/merge-patch+json, and',
      'Webhooks are not here: born',
    ])
      expect(code).toContain(`// ${words}`);
    const { rows, call } = await gatewayOf(code);
    expect(rows).toHaveProperty('getReadiness2');
    expect(rows['getV1FAB']).toMatchObject({ params: { a: 'name', b: 'name' } });
    expect(await flawsIn((await call('/openapi.json', { token: null })).text)).toBeUndefined();
  });

  test('what is usual in documents that others print: references with words beside them, texts that may be null', async () => {
    const node = object({
      id: { allOf: [ref('Id')], description: 'its number' },
      parent: { allOf: [ref('Node')], readOnly: true },
      kids: list({ allOf: [ref('Node'), object({ extra: text })] }),
      mixed: { enum: [1, { a: 1 }] },
      pair: { type: 'array', prefixItems: [text], items: { type: 'integer' } },
      short: { allOf: [{ minLength: 1 }, { maxLength: 5 }] },
      token: { anyOf: [text, { type: 'null' }] },
      APIKeys: list(text),
    });
    const post = { requestBody: { $ref: 'bodies.yaml#/Node' }, ...answered(ref('Node')) };
    const sent = { content: { 'application/json': { schema: ref('Node') } } };
    const paths = {
      '/v1/nodes': {
        get: { operationId: 'nodes', ...answered(object({ results: list(ref('Node')), next: text })) },
        post: { operationId: 'add', ...post },
        put: { operationId: 'put', requestBody: sent, ...answered(ref('Node')) },
      },
      '/v1/rest': { $ref: 'rest.yaml' },
      '/v1/odd': {
        get: { operationId: 'odd', ...answered(object({ 'a/b': list({}), next: { ...text, format: 'uri' } })) },
      },
    };
    const Id = { type: 'integer', readOnly: true };
    const schemas = { Id, Node: { ...node, required: ['id', 'mixed', 'pair', 'short'] } };
    const code = await printed(api(paths, { components: { schemas } }));
    for (const line of [
      'POST /v1/nodes is not here: its body is bodies.yaml#/Node, which is not in the document',
      'the path /v1/rest is not here: rest.yaml is not in the document',
      'look: are these links?',
    ])
      expect(code).toContain(`// ${line}`);
    const { rows, call, next } = await gatewayOf(code);
    expect(Object.keys(rows)).toEqual(['nodes', 'put', 'odd']);
    expect([rows['put']?.secrets, rows['odd']?.page]).toEqual([['token', 'APIKeys'], undefined]);
    const whole = { mixed: { a: 1 }, pair: ['x', 1], short: 'abc', token: null };
    next('put', '{}');
    expect((await call('/v1/nodes', { method: 'PUT', body: whole })).status).toBe(200);
  });

  test('nothing that a document says is run, or ends a comment or a text', async () => {
    const evil = [
      '*/ globalThis.ran = 1 /*',
      '"; globalThis.ran = 1; "',
      '`${globalThis.ran = 1}`',
      '\n globalThis.ran = 1 //',
      '\u2028globalThis.ran = 1\u2029//',
      "'+(globalThis.ran=1)+'",
      '\\',
      '__proto__',
      'constructor',
      '@ts-nocheck',
      '\u202Eabc',
    ];
    for (const words of evil) {
      const own = { ...text, description: words, example: words, enum: [words] };
      const fields = JSON.parse(
        `{${JSON.stringify(words)}:${JSON.stringify(own)},"fine":{"type":"string","description":${JSON.stringify(words)},"example":${JSON.stringify(words)}}}`,
      ) as object;
      const at = (name: string, where: string, schema: object = own) => ({
        name,
        in: where,
        description: words,
        schema,
      });
      const code = await printed({
        openapi: `3.0.0`,
        info: { title: words, version: words },
        servers: [{ url: words }, { url: words }],
        tags: [{ name: words, description: words }],
        webhooks: { [words]: {} },
        paths: {
          '/v1/a/{x}': {
            post: {
              operationId: words,
              summary: words,
              description: words,
              tags: [words],
              parameters: [
                at('x', 'path', { pattern: words }),
                at(words, 'query'),
                at(words, 'header'),
                at('e', 'query'),
              ],
              requestBody: json({ $ref: `#/components/schemas/${words.replaceAll('~', '~0').replaceAll('/', '~1')}` }),
              ...answered(object(fields, { description: words, required: [words] })),
              callbacks: { [words]: {} },
            },
            get: { operationId: words, tags: [words], responses: { 200: { content: { [words]: {} } } } },
          },
          [`/v1/b/${words}`]: { get: { ...answered(object({})) } },
          '/v1/d': { get: { ...answered(object({ [words]: { not: {} } })) } },
          [`/v1/c/{${words}}`]: { get: { ...answered({ not: {}, description: words }) } },
        },
        components: {
          schemas: Object.fromEntries([[words, object(fields)]]),
          securitySchemes: { [words]: { type: words, name: words } },
        },
      });
      expect(code).not.toMatch(/^\s*\/\/+ *[@#]/m); // an instruction to a compiler
      expect(code.match(/[\u2028\u2029\u202E]/), words).toBeNull();
      const { call, next, rows } = await gatewayOf(code);
      const { id, body } = Object.values(rows).find((row) => row.method === 'POST')!;
      next(id, '{}');
      expect((await call('/v1/a/5', { body: body ? { fine: 'a' } : undefined, method: 'POST' })).status, words).toBe(
        200,
      );
    }
    expect(globalThis).not.toHaveProperty('ran');
    expect(Object.prototype).not.toHaveProperty('type');
  });

  test.each<readonly [words: string, text: string]>([
    ['is no OpenAPI 3 document', '{"swagger":"2.0"}'],
    ['is no OpenAPI 3 document', 'hello'],
    ['is no OpenAPI 3 document', ''],
    ['Unexpected', '{"openapi": "3.0.0" "a" [}'],
  ])('%s', async (words, document) => {
    await expect(printed(document)).rejects.toThrow(words);
  });

  test('it reads what it wrote before: the document of the gateway itself', async () => {
    const { call } = openGateway({});
    const { text: own } = await call('/openapi.json', { token: null });
    const { rows } = await gatewayOf(await printed(own));
    expect(Object.keys(rows)).toContain('getSubscription');
  });
});
