import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { answered, api, gatewayOf, json, list, object, printed, ref, text } from './importing.ts';

const id = (schema: object) => [{ name: 'id', in: 'path', required: true, schema }];

describe(says('`portico import openapi.json` writes a table from an OpenAPI 3 document'), () => {
  test('names are made to be names, descriptions are short, and parameters have the values of their lists', async () => {
    const parameters = [
      { name: 'constructor', in: 'query', schema: text },
      { name: 'kind', in: 'query', schema: { enum: ['cat', 'cat', null] } },
      { name: 'size', in: 'query', schema: { type: 'integer', enum: [1, 2] } },
    ];
    const description = `${'x'.repeat(150)} ${'y'.repeat(150)}`;
    const code = await printed(
      api({
        '/v1/a': { get: { operationId: 'constructor', description, parameters, ...answered(object({})) } },
        '/v1/b': { get: { operationId: 'été à Naïf', ...answered(object({})) } },
      }),
    );
    expect(code).toContain('// the parameter constructor is passed on as it is');
    const { rows, call } = await gatewayOf(code);
    expect(Object.keys(rows)).toEqual(['constructor1', 'eteANaif']);
    expect(rows['constructor1']?.description).toBe(`${'x'.repeat(150)} …`);
    expect((await call('/v1/a?kind=null&size=3')).json.errors).toMatchObject([{ field: 'kind' }, { field: 'size' }]);
    expect((await call('/v1/a?kind=cat&size=2&constructor=a')).status).toBe(200);
  });

  test('what an operation says counts, else what its path or the document says', async () => {
    const paths = {
      '/v1/a/{id}': {
        servers: [{ url: 'https://a.example' }],
        parameters: id({ type: 'string', format: 'uuid' }),
        get: { operationId: 'read', parameters: id({ type: 'integer' }), ...answered(object({})) },
        post: { operationId: 'write', parameters: id({ type: 'integer' }), ...answered(list(text)) },
      },
    };
    const code = await printed(api(paths));
    expect(code).toContain('// it is on a server of its own: https://a.example\n  read: {');
    const { rows } = await gatewayOf(code);
    expect(rows['read']?.params).toEqual({ id: 'digits' });
    expect([rows['write']?.credential, rows['write']?.page]).toEqual([undefined, undefined]);
    const open = await gatewayOf(await printed(api(paths, { security: [] })));
    expect([open.rows['read']?.credential, open.rows['write']?.credential]).toEqual([undefined, 'none']);
  });

  test.each(['APIToken', 'authtoken', 'jwt', 'signing_key', 'newPasswd', 'pwd', 'otp', 'cvc', 'credentials'])(
    'a secret is guessed by its name: %s',
    async (name) => {
      const { rows } = await gatewayOf(await printed(api({ '/v1/a': { get: answered(object({ [name]: text })) } })));
      expect(rows['getV1A']?.secrets).toEqual([name]);
    },
  );

  test('secrets are found at any depth, and references lead nowhere but into the document, nor round in it', async () => {
    const hidden = { keys: list(object({ token: text })), inner: object({ again: object({ password: text }) }) };
    const parts = { allOf: [object({ secret: text })] };
    const schemas = {
      Round: ref('Back'),
      Back: ref('Round'),
      Self: { allOf: [ref('Self'), object({ a: text })] },
    };
    const code = await printed(
      api(
        {
          '/v1/secrets': { get: answered(object({ ...hidden, parts })) },
          '/v1/round': { get: answered(ref('Round')) },
          '/v1/self': { get: answered(ref('Self')) },
          '/v1/ours': { get: answered(object({ ours: { $ref: '#/components/constructor' } })) },
        },
        { components: { schemas } },
      ),
    );
    expect(code).toContain('// ours: #/components/constructor is not in the document');
    const { rows, call } = await gatewayOf(code);
    expect(rows['getV1Secrets']?.secrets?.toSorted()).toEqual(['password', 'secret', 'token']);
    for (const path of ['/v1/round', '/v1/self', '/v1/ours']) expect((await call(path)).status, path).toBe(200);
  });

  test('what may be null or is missing in an answer fits, and what a reference has beside it is not lost', async () => {
    const named = ref('Named');
    const all = {
      one: { enum: ['a', null] },
      two: { ...named, nullable: true },
      both: { allOf: [named], properties: { b: text }, required: ['b'] },
      sent: { ...text, writeOnly: true },
      either: { oneOf: [ref('Tree'), { type: 'number' }] },
    };
    const schemas = {
      Named: object({ a: text }, { required: ['a'] }),
      Tree: object({ of: { oneOf: [ref('Tree'), { type: 'number' }] } }, { required: ['of'] }),
      Token: object({ token: text }),
    };
    const x = [{ name: 'x', in: 'path', schema: { pattern: 'x+' } }];
    const code = await printed(
      api(
        {
          '/v1/x/{x}': { get: { parameters: x, requestBody: json({}), ...answered(named) } },
          '/v1/all': { get: answered(object(all, { required: Object.keys(all) })) },
          '/v1/token': { post: { requestBody: json(ref('Token')), ...answered(ref('Token')) } },
        },
        { components: { schemas } },
      ),
    );
    expect(code).not.toMatch(/what x may be|has itself in it/);
    const { rows } = await gatewayOf(code);
    const fits = (both: object, either: unknown = 1) =>
      rows['getV1All']?.answer?.safeParse({ one: null, two: null, both, either }).success;
    const fit = [fits({ a: '', b: '' }), fits({ a: '' }), fits({ b: '' }), fits({ a: '', b: '' }, { of: { of: 1 } })];
    expect([...fit, fits({ a: '', b: '' }, { of: {} })]).toEqual([true, false, false, true, false]);
    expect(rows['postV1Token']?.secrets).toEqual(['token']);
  });
});
