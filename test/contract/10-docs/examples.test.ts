import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { accountTable, allOperations, type OperationId } from '../../support/account-api.ts';
import { exampleBody, exampleOf, exampleRequest } from '../../support/examples.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { readIds, rowOf } from '../../support/table.ts';
import { answer, type Reply } from '../../support/upstream.ts';
import { bodies, checkerOf, document, itemOf, misfits, type Schema } from './openapi.ts';

const gateway = openGateway({ CACHE_POLICY: '{"getSubscription":{"fresh":0,"stale":0,"on_error":60}}' });
const { call, upstream } = gateway;

const examplesIn = (node: unknown): [Schema, unknown][] => {
  if (typeof node !== 'object' || node === null) return [];
  const { examples, ...schema } = node as Schema;
  const own = Array.isArray(examples) ? examples.map((one: unknown): [Schema, unknown] => [schema, one]) : [];
  return [...own, ...Object.values(schema).flatMap(examplesIn)];
};

/** The object with each field null in turn, and without each in turn. */
const variantsOf = (whole: object): object[] =>
  Object.keys(whole).flatMap((name) => {
    const { [name]: _, ...others } = whole as Record<string, unknown>;
    return [others, { ...others, [name]: null }];
  });

describe(says('OpenAPI 3.1, valid, with examples'), () => {
  test('every body has one, and it fits', () => {
    const shown = bodies.filter(({ type }) => type !== 'text/html');
    expect(shown.length).toBeGreaterThan(50);
    for (const { name, media } of shown) {
      const { schema, example, examples = {} } = media;
      const values = example === undefined ? Object.values(examples).map(({ value }) => value) : [example];
      expect(values, name).not.toEqual([]);
      for (const value of values) expect([name, misfits(schema, value)]).toEqual([name, []]);
    }
  });

  test('those of fields fit their fields', () => {
    const found = examplesIn(document.components.schemas);
    expect(found.length).toBeGreaterThan(200);
    for (const [schema, value] of found) expect([schema, value, misfits(schema, value)]).toEqual([schema, value, []]);
  });

  test.each(allOperations.map(({ id }) => id))(
    '%s: what the upstream gives fits, and what may be missing is said',
    (id) => {
      const { method, path, body, answer: schema } = rowOf(id);
      const item = itemOf(path, method);
      const good = Object.entries(item.responses).find(([status]) => status.startsWith('2'))?.[1];
      const documented = good?.content?.['application/json']?.schema;
      if (schema) expect(misfits(documented, JSON.parse(exampleBody(id)))).toEqual([]);
      const asked = item.requestBody?.content['application/json']?.schema;
      for (const [table, told] of [
        [schema, documented],
        [body?.schema, asked],
      ] as const) {
        const checker = checkerOf(told);
        for (const value of table ? variantsOf(exampleOf(table) as object) : [])
          expect([value, checker.safeParse(value).success]).toEqual([value, table?.safeParse(value).success]);
      }
    },
  );
});

const OVERVIEW = '/bff/v1/account-overview';

interface State {
  readonly state: string;
  readonly section: string;
  readonly query?: string;
  readonly reply?: readonly [OperationId, Reply];
}

const FAILS = answer(500);
const WITHOUT_CARD = answer(200, exampleBody('getSubscription', { payment_method: null }));

/** Every state of a section, by what the upstream answers to one call. */
const STATES: readonly State[] = [
  { state: 'fresh', section: 'subscription' },
  { state: 'stale', section: 'subscription', reply: ['getSubscription', FAILS] },
  {
    state: 'failed',
    section: 'referral_config',
    reply: ['getReferralConfig', answer(429, {}, { 'retry-after': '7' })],
  },
  { state: 'not_applicable', section: 'payment_method', reply: ['getSubscription', WITHOUT_CARD] },
  { state: 'skipped', section: 'payment_method', query: '?sections=payment_method', reply: ['getSubscription', FAILS] },
];

describe.each(STATES)(`${says('with examples; types')}: $section that is $state`, (row) => {
  const { state, section, query = '', reply } = row;
  const { 'application/json': whole, 'application/x-ndjson': line } = itemOf(OVERVIEW).responses['200']?.content ?? {};
  const answered = async (headers = {}) => {
    const token = secret();
    if (state === 'stale') await gateway.ask('getSubscription', { token });
    if (reply) upstream.next(...reply);
    return call(OVERVIEW + query, { token, headers });
  };

  test('as JSON', async () => {
    const { json } = await answered();
    expect(json.meta.sections[section]).toMatchObject({ state });
    // The schema tells of an answer that has its required sections, which a query may leave out.
    const missing = query === '' ? [] : ['data.subscription', 'meta.sections.subscription'];
    expect(misfits(whole?.schema, json)).toEqual(missing);
  });

  test('as lines', async () => {
    const { text } = await answered({ accept: 'application/x-ndjson' });
    const values = text
      .trimEnd()
      .split('\n')
      .map((one) => JSON.parse(one) as object);
    expect(values).toContainEqual(expect.objectContaining({ section, state }));
    for (const value of values) expect(misfits(line?.schema, value)).toEqual([]);
  });
});

test(`${says('types that openapi-typescript makes of it say what this page says')}: the same of a required section, a line, an item and a code`, () => {
  const { 'application/json': whole, 'application/x-ndjson': line } = itemOf(OVERVIEW).responses['200']?.content ?? {};
  const complete = (whole?.examples?.['complete']?.value ?? {}) as { readonly data?: object };
  const withData = (more: object) => misfits(whole?.schema, { ...complete, data: { ...complete.data, ...more } });
  expect([withData({}), withData({ notifications: null })]).toEqual([[], []]);
  expect([withData({ subscription: null }), withData({ subscription: undefined })]).not.toContainEqual([]);
  expect(misfits(line?.schema, { section: 'subscription', state: 'lost', data: null })).not.toEqual([]);
  const batch = itemOf('/bff/v1/batch', 'post');
  const item = (one: object) =>
    misfits(batch.responses['200']?.content?.['application/json']?.schema, { responses: [one] });
  const body = JSON.parse(exampleBody('getSubscription')) as object;
  expect(item({ id: 'a', status: 200, body })).toEqual([]);
  expect([item({ id: 'a', status: 200, body: 5 }), item({ id: 'a', status: 302, body })]).not.toContainEqual([]);
  const { Problem, ProblemCode } = document.components.schemas;
  expect(ProblemCode?.['enum']).toContain('upstream_timeout');
  for (const code of ['upstream_timeout', 'card_declined', '3ds-needed', ...accountTable.refusals.keys()])
    expect(misfits(Problem, { ...problemExample, code })).toEqual([]);
  for (const code of ['', 'A secret', 5]) expect(misfits(Problem, { ...problemExample, code })).not.toEqual([]);
});

const problemExample = Object.values(document.components.responses)
  .flatMap(({ content = {} }) => Object.values(content['application/problem+json']?.examples ?? {}))
  .map(({ value }) => value as object)[0];

test(`${says('/openapi.json (OpenAPI')}: real answers are as documented`, async () => {
  const batch = itemOf('/bff/v1/batch', 'post').responses['200']?.content?.['application/json']?.schema;
  for (const some of [readIds.slice(0, 10), readIds.slice(10)]) {
    const requests = some.map((id) => ({ id, path: exampleRequest(id).path }));
    expect(misfits(batch, (await call('/bff/v1/batch', { body: { requests } })).json)).toEqual([]);
  }
  upstream.next('purchasePlan', answer(500));
  const key = secret();
  const problem = await gateway.ask('purchasePlan', { key });
  expect(misfits(document.components.schemas['Problem'], problem.json)).toEqual([]);
  const outcome = itemOf('/bff/v1/outcome').responses['200']?.content?.['application/json']?.schema;
  await gateway.ask('purchasePlan', { key: `${key}-2`, token: secret() });
  for (const one of [key, `${key}-2`]) {
    const { status, json } = await call('/bff/v1/outcome', { key: one });
    if (status === 200) expect(misfits(outcome, json)).toEqual([]);
  }
  for (const bad of [{ state: 'done' }, { state: 'lost' }, {}]) expect(misfits(outcome, bad)).not.toEqual([]);
});
